"""Clusters, queues of jobs and recorded traces: what is played.

Begin with `play`, which plays a `scenario` on an emulated master to its end.
"""
