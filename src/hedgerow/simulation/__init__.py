"""Learners meet worlds (paper, Algorithm 1): `run` drives, `referee` plays and scores, `result` is what comes out."""
