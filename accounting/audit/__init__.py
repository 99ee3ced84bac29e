"""Audits: from the results of an attack to a lower bound of epsilon, with its confidence."""
