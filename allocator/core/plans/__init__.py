"""Plans that solvers work out beside the cycles, and what they take back from whoever holds it.

Begin with `problems`; then `adopted`, the plan in force.
"""
