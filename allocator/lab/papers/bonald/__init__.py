"""Bonald and Roberts: proportional fairness beside DRF."""
