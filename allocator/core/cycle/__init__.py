"""One cycle: takes a snapshot of the books, asks the policy for grants, and makes decisions.

`Allocator.allocate` in `core/allocator.py` runs a cycle. Start with `cycle`; `snapshot_builder`
makes the policies' input.
"""
