"""Figures and plots of a run, independent of the experiment it belongs to.

Start with `run_report`.
"""
