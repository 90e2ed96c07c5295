"""Explains past cycles and tries hypothetical ones: the trail, other policies, reallocation.

Nothing here changes the books. Start with `trail`.
"""
