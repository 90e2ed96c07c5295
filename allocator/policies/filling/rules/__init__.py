"""What a grant may be and what it changes: offers, quotas, charges.

Begin with `offers`.
"""
