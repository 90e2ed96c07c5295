"""Experiments: scenarios played with sidecars, several at a time.

Begin with `runs`: one run under one policy. `spread` distributes calls over processes.
"""
