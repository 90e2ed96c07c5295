"""Copies of the books at one moment, for readers on other threads. Start with `report`."""
