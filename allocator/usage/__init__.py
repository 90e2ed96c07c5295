"""What was used, offered and idle over time: an exact account, and what is reported of it.

A pure fold over the record stream of a sidecar, so the observer and a replay of the journal come to
the same account. Start with `account`.
"""
