"""Audits of training runs: what an adversary who sees the weights shows, beside what is certified."""
