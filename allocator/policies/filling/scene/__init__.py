"""Builds the arrays of the compiled loops from a snapshot, and has the steps that all loops share.

Start with `loop_arrays`.
"""
