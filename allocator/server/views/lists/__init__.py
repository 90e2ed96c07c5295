"""Agents, frameworks and roles as operators list them: a bounded number, of one moment.

What is asked for is chosen and read by one function for each. That runs on the core's thread, or
in a forked process where the cluster is large.
"""

from allocator.server.views.lists.agents import list_agents
from allocator.server.views.lists.bounds import LISTED_MAX, UnknownWordError
from allocator.server.views.lists.frameworks import list_frameworks
from allocator.server.views.lists.roles import list_roles

__all__ = ["LISTED_MAX", "UnknownWordError", "list_agents", "list_frameworks", "list_roles"]
