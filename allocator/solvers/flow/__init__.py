"""Flows in networks: maximum, minimum-cost, and repair after a change.

Start with `min_cost_flow`.
"""
