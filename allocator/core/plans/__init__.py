"""Plans that solvers compute in the background, and requests to leave agents that follow from them.

Start with `problems`, then `adopted` (the plan in force).
"""
