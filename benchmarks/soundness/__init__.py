"""High-precision references for (epsilon, delta), and the run that tests certified intervals against them."""
