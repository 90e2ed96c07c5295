"""Operators' changes: trial, activation, saving and auditing.

Start with `change_requests`, then `operators`.
"""
