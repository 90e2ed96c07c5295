"""Filters in force, and which of them cover all that their clients could be offered.

Begin with `table`; the others are its arrays, and what is derived from them.
"""
