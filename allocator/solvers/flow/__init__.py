"""Solvers for flows in networks: maximum flow and minimum-cost flow.

Start with `min_cost_flow`.
"""
