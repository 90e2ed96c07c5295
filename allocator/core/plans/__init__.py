"""Plans that solvers work out beside the cycles, and the resources they reclaim.

Begin with `problems`; then `adopted`, the plan in force.
"""
