"""Models of frameworks: what they do with offers.

Begin with `base`: what a framework is told, and may answer. Of a master they know `Master` alone.
"""
