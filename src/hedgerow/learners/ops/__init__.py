"""The mirror-descent family: SV-OPS, S-OPS, CV-OPS, UOB-REPS. One state, one compiled step, one projection."""
