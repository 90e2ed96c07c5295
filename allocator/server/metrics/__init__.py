"""Metrics for Prometheus.

Start with `scraping`, which serves them; `family` defines how a metric is declared.
"""
