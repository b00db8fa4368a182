"""The mirror-descent family: SV-OPS, S-OPS, B-OPS, C-OPS, CV-OPS, UOB-REPS. One state, one step, one projection."""
