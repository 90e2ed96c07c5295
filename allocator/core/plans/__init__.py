"""Plans that solvers compute in the background, and the resources they reclaim.

Start with `problems`; then `adopted`, the plan in force.
"""
