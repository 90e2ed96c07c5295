"""Copies of what the core knows at one moment, for whoever reads them on another thread.

Begin with `report`.
"""
