"""Benchmarks and stress runs: what is claimed about speed and robustness, measured by `python -m bench`."""
