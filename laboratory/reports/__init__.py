"""Figures and plots of a run.

Begin with `run_report`. It knows what a run is, not which experiment it belongs to.
"""
