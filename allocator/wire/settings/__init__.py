"""Operators' settings as messages.

Start with `operator_settings`.
"""
