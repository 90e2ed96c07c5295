"""What a grant may contain and what it changes: offers, quotas, charges.

Start with `offers`.
"""
