"""The emulated master: its ledger, its gates, its end of the session, and events from Mesos.

Begin with `emulated`; `ledger` has its exact books, which the sidecar never sees.
"""
