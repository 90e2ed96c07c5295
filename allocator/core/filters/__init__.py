"""Filters in force, and which of them cover all that their clients could be offered."""
