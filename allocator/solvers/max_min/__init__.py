"""Constrained max-min fairness (CMMF): machines that only some may use.

Begin with `max_min`.
"""
