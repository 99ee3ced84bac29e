"""Laws of the privacy loss in one direction: what the engines compose."""
