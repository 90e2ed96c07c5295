"""Lists agents, frameworks and roles for operators: a bounded number of each.

The books' thread only copies; the thread of the request selects and writes.
"""

from allocator.server.views.lists import agents, frameworks, roles
from allocator.server.views.lists.bounds import LISTED_MAX

__all__ = ["LISTED_MAX", "agents", "frameworks", "roles"]
