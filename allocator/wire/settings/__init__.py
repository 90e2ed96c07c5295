"""What operators set, as messages.

Begin with `operator_settings`.
"""
