"""Environments: they play policies, and score them.

`play` draws an episode of a CMDP in compiled code, `player` does it with the streams of a run, `scores` adds up the
exact scores of mixtures, `protocol` says what an environment of your own needs.
"""
