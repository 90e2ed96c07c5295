"""What can be asked without changing anything.

Begin with `views`.
"""
