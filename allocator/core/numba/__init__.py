"""The core's array containers, and the compilation of loops over them, independent of Mesos.

Start with `compiled` (how a loop is declared), then `array_structures`.
"""
