"""How close a synthetic table is to held-out real rows: marginals, pairs, associations, what it teaches."""
