"""Learners meet worlds (paper, Algorithm 1): episodes are drawn, learnt from, and scored exactly.

`play` draws an episode, `scoring` judges it by the true transitions and mean costs, `loop` runs blocks of
episodes in compiled code, `run` is the door.
"""
