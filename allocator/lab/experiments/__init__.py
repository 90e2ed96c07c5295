"""Experiments: scenarios played against sidecars, a few at a time."""
