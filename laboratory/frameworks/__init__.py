"""Models of frameworks: how they respond to offers.

Start with `base`, the interface. Of a master they know only the protocol `Master`.
"""
