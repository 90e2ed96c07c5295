"""The exact account of what was used, offered and idle over time, and reports of it.

It is computed from the record stream alone, so the observer and a replay of the journal come to
the same account. Start with `account`.
"""
