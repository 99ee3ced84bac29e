"""Ball(X, u, d, rho) of arXiv 2506.19836: how sure an attribute is once the public features are known.

`draws`: from records that have one public view; `nearest`: from records whose views are near, an estimate;
`reconstruction`: a certified lower bound from how well the best linear guess does. What follows for an attack
on a release is `exactdp.accounting.fdp.risk.attribute_advantage`.
"""
