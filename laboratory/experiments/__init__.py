"""Experiments: scenarios played with sidecars, several at a time.

Start with `runs`: one run under one policy. `spread` distributes calls over processes.
"""
