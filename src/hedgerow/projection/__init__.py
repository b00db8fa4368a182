"""Problem (PROJ): the KL projection onto the occupancies that boxes and constraints allow, exact and certified."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
