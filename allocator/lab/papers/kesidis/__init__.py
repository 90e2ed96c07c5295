"""Kesidis et al.: six schedulers on Mesos, and per-server fairness."""
