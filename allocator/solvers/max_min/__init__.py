"""Constrained max-min fairness (CMMF): machines that only some users may use.

Start with `max_min`.
"""
