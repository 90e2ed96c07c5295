"""The core's array containers, and the compilation of loops over them, independent of Mesos.

Start with `compiled`, which declares loops, then `array_structures`.
"""
