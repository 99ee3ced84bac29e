"""Dominating pairs, one family a file."""
