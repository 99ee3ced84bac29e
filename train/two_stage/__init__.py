"""Synthetic tables from a language model trained in two stages (arXiv 2412.02467v2)."""
