"""Agents, frameworks and roles as operators list them: a bounded number of each.

What holds the core's thread is a copy; it is chosen and written on the thread of whoever asked.
"""

from allocator.server.views.lists import agents, frameworks, roles
from allocator.server.views.lists.bounds import LISTED_MAX, UnknownWordError

__all__ = ["LISTED_MAX", "UnknownWordError", "agents", "frameworks", "roles"]
