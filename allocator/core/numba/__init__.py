"""The core's array containers, and the compilation of loops over them. Knows nothing of Mesos.

Begin with `compiled` (how a loop is declared), then `array_structures`.
"""
