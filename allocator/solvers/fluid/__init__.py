"""Solvers for fair shares of divisible resources.

Start with `proportional_fairness`.
"""
