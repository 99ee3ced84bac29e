"""Trade-off curves (f-DP): certified envelopes of a composition, operations on curves, attack bounds."""
