"""What the compiled loops work on: arrays made of a snapshot, and the steps that all loops share.

Begin with `loop_arrays`.
"""
