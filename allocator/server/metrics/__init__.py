"""What Prometheus is told.

Begin with `metrics`.
"""
