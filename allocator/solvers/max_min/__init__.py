"""Solvers for constrained max-min fairness (CMMF): users can use only some of the machines.

Start with `max_min`.
"""
