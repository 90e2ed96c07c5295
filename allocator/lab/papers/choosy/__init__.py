"""Ghodsi et al., Choosy: constrained max-min fairness."""
