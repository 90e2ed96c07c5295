"""The thread that owns the core, and those beside it: journal, planning, shadow, fairness.

Begin with `core_loop`.
"""
