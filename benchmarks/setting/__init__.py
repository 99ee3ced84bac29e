"""A mechanism as a user describes it, turned into what the accountants compose."""
