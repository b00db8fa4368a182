"""Environments: they play policies, and score them.

`play` draws episodes of a CMDP in compiled code and says what an environment of your own needs, `scores` adds up the
exact scores of mixtures, `columns` declares what a run leaves behind.
"""
