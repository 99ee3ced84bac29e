"""Training steps compiled for a TPU that is not there, and what the compiled program costs."""
