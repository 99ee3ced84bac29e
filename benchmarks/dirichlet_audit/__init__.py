"""The audit of weights trained by arXiv 2607.19580v1, beside what is claimed for its draws."""
