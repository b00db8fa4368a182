"""The world (paper, section 2): layout, CMDP, occupancies, offline optima, unrolling, losses."""
