"""Users' policies: loaded from files and packages, tried out, and run so that none hangs the core.

Begin with `guarded_policy`.
"""
