"""Experiments: scenarios played against sidecars, a few at a time.

Begin with `runs`: one run under one policy. `spread` plays many at once.
"""
