"""Solvers for flows in networks: maximum flow, minimum-cost flow, and repair after a change.

Start with `min_cost_flow`.
"""
