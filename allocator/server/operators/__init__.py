"""Operators' changes: trial, activation, saving and auditing.

Start with `operators`; `grpc/admin.py` receives the requests.
"""
