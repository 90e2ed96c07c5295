"""The books: who is there, who holds what where, what is refused to whom, what quotas leave.

Begin with `state`, which has one of each; only `core.apply` and `core.cycle` change them.
"""
