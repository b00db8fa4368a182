"""Planning in a known world: optimum, Slater point, best replies (linear programs and backward induction)."""
