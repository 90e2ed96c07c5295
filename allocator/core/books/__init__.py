"""The books: agents, clients, holdings, which agents may serve which clients, what quotas leave.

Start with `state`, which holds them all; only `core.apply` and `core.cycle` change them.
"""
