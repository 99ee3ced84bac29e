"""Scripts and commands: compute, write CSV, draw the figure from the CSV."""
