"""The other learners of the field: what SV-OPS, S-OPS and CV-OPS are compared with.

Each has a file of its own, with its source, what it is told, what it promises, and which of its constants we recall
rather than read.
"""
