"""What happened and what else might have: the trail, another policy, another mode, everything anew.

Nothing here changes the books. Begin with `trail`.
"""
