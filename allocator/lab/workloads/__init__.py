"""Clusters, queues of jobs and recorded traces: what is played."""
