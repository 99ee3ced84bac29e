"""High-precision references for (epsilon, delta) of composed mechanisms, and the run that tests against them."""
