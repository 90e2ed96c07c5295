"""From a run to figures and plots.

Begin with `run_report`. It knows what a run is, not which experiment it belongs to.
"""
