"""Ladders of claims: for each paper, the bound as printed, the repairs, and the exact value."""
