"""The compiled loops' arrays, made from a snapshot, and the steps that all loops share.

Start with `loop_arrays`.
"""
