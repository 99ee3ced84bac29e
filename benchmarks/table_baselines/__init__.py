"""Other synthesizers of tables, each in a process of its own, on one split, budget and public domain."""
