"""exactdp: printed differential-privacy bounds beside numerically exact ones."""

__version__ = "0.1.0"
