"""Our pairs in the terms of other accountants, so that independent engines can check ours."""
