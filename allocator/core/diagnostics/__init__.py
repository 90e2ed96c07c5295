"""Past and hypothetical cycles: the trail, another policy or mode, an allocation from scratch.

Nothing here changes the books. Begin with `trail`.
"""
