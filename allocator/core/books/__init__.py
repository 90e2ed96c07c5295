"""The books: agents, clients, holdings, which agents may serve which clients, what quotas leave.

Begin with `state`, which has one of each; only `core.apply` and `core.cycle` change them.
"""
