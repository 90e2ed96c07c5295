"""Fair shares of what can be divided at will: proportional, per server, by water filling.

Begin with `proportional_fairness`.
"""
