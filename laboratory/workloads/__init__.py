"""Clusters, queues of jobs and recorded traces: the workloads to play.

Begin with `play`, which plays a `scenario` on an emulated master to its end.
"""
