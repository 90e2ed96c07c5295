"""Flows in networks: the largest, the cheapest, and repair after a change.

Begin with `min_cost_flow`.
"""
