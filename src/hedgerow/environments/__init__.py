"""Where policies are played, and what they are worth there.

`play` draws an episode of a CMDP in compiled code, `player` does it with the streams of a run, `scores` adds up the
exact scores of mixtures for whoever plans them, `protocol` says what an environment of somebody else needs.
"""
