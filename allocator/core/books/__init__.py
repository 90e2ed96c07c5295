"""The books: agents, clients, holdings, eligibility, quotas.

Start with `state`, which holds all of them; only `core.apply` and `core.cycle` change them.
"""
