"""What Prometheus scrapes.

Begin with `scraping`, which serves them; `family` says how one is declared.
"""
