"""Converts messages to events and back; validates values, with errors that name the field.

Start with `decode`.
"""
