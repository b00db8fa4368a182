"""Benchmarks and stress runs: `python -m bench` measures every claim about speed and robustness."""
