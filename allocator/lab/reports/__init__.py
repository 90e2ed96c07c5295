"""From a run to numbers and pictures.

Begin with `run_report`. It knows runs, and not where they come from.
"""
