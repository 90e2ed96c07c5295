"""Converts operators' settings to messages and back. Start with `operator_settings`."""
