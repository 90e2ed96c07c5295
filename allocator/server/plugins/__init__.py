"""Users' policies: loads them from files and packages, tries them, and limits what they can do.

Start with `guarded_policy`.
"""
