"""What Prometheus is told.

Begin with `scraping`, which serves them; `family` says how one is declared.
"""
