"""The emulated master: its ledger, its gates, its end of the session, and events from Mesos.

Start with `emulated`. `cycles` makes the offers; `ledger` has the exact books, which the sidecar
never sees.
"""
