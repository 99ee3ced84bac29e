"""Audits of our own samplers: draws by the million, scored by the likelihood ratio of the ideal pair."""
