"""Copies of what the books hold at one moment, for whoever reads them on another thread.

Begin with `report`.
"""
