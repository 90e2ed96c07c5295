"""Filters in force, and which of them cover all that their clients could be offered.

Start with `table`; the other files are its arrays and data derived from them.
"""
