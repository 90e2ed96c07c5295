"""Bonald and Roberts: proportional fairness beside DRF.

References
----------
.. [1] Bonald, Roberts. "Enhanced Cluster Computing Performance through Proportional Fairness."
   Performance Evaluation 79, 2014.
"""
