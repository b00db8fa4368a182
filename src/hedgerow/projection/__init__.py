"""Problem (PROJ): the KL projection onto the occupancies that boxes and constraints allow, exact and certified."""
