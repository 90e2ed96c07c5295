"""Fair shares of divisible resources: proportional, per server, by water filling.

Start with `proportional_fairness`.
"""
