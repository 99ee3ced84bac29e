"""The `exactdp` command."""
