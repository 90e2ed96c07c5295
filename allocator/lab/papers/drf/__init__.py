"""Ghodsi et al., Dominant Resource Fairness."""
