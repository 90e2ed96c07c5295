"""Clusters, queues of jobs and recorded traces: the workloads to play.

Start with `play`, which plays a `scenario` on an emulated master to its end.
"""
