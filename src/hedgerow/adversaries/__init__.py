"""Adversaries: who chooses the losses. `losses` lists them; oblivious ones hand out blocks, adaptive ones answer."""
