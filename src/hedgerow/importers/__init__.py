"""From elsewhere to a loop-free CMDP: finite-horizon MDPs, Gymnasium tables."""
