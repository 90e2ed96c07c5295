"""One cycle: a snapshot of the books, the policy's grants, and the decisions made of them.

Begin with `cycle`; policies see what `snapshot_builder` makes.
"""
