"""One cycle: a snapshot of the books, the policy's grants, and the decisions made of them.

`Allocator.allocate` in `core/allocator.py` starts one. Begin with `cycle`; policies see what
`snapshot_builder` makes.
"""
