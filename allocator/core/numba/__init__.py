"""What the core's arrays are made of, and how loops over them are compiled. Knows nothing of Mesos.

Begin with `compiled` (how a loop is declared), then `array_structures`.
"""
