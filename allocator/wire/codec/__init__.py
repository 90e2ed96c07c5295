"""Messages to events and back: values are checked here, and an error names the field.

Begin with `decode`.
"""
