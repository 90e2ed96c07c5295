"""The emulated master: its books, its gates, its end of the session, and what Mesos does to it.

Begin with `emulated`; `ledger` has its exact books, which the sidecar never sees.
"""
