"""One cycle: a snapshot of the books, the policy's grants, and the decisions made from them.

`Allocator.allocate` in `core/allocator.py` starts one. Start with `cycle`; `snapshot_builder` makes
    the policies' input.
"""
