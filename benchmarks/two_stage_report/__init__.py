"""The report of a synthetic table: metrics and figures as one HTML page, and a CSV file."""
