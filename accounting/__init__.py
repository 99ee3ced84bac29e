"""Exact privacy accounting in float64 on the host: dominating pairs, accountants, ladders."""
