"""Formats the output of commands, as tables and text.

Start with `tables`. The input is messages or records; no calls are made.
"""
