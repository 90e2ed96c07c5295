"""The books: who is there, who holds what where, who may be served where, what quotas leave.

Begin with `state`, which has one of each; only `core.apply` and `core.cycle` change them.
"""
