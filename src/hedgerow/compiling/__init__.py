"""Compiled code: what a kernel is, what it works on, how it is compiled and where the result is kept."""
