"""What operators change: tried, put in force, kept on the disk, and written down.

Begin with `change_requests`, then `operators`.
"""
