"""Rules of a grant: what it may contain (offers, quotas) and what it changes (charging).

Start with `offers`.
"""
