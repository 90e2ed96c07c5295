"""Copies of the books at one moment, for readers on other threads.

Begin with `report`.
"""
