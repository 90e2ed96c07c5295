"""Messages to events and back; values are validated here, and errors name the field.

Start with `decode`.
"""
