"""The audit of what arXiv 2412.02467v2 takes from a private table, and of its loss, beside the claims."""
