"""A charger at a workplace: measured charging sessions, prices and emissions as worlds and losses."""
