"""What a journal's records say, how they stand in a file, and what can be computed again from them.

Begin with `records`.
"""
