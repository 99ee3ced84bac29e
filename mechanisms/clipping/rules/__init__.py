"""Rules: how one use of parameters gives norms and weighted sums."""
