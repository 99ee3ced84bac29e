"""The figures of the three papers: compute, write CSV, draw from the CSV."""
