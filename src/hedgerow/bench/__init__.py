"""Benchmarks and stress runs: what is claimed about speed and robustness, measured in one command."""
