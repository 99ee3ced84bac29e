"""Privacy bounds as three papers print them, and the repairs, each with its source and threat model."""
