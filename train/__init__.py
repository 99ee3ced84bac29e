"""Trainers of the three papers, built on `exactdp.mechanisms`."""
