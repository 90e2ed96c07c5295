"""The process: it begins, reads its configuration again, and ends.

Begin with `main`, which builds everything; nothing imports this room.
"""
