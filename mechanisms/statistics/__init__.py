"""Private statistics of a table: noisy counts, and the kind, the range or the categories of a column."""
