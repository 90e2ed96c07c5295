"""The status page: what operators look at in a browser, or leave on a wall.

It is made here, whole: no script, nothing from elsewhere, and it only shows. What it says comes
from the views that the commands use (`allocator.server.views.views`).

Begin with `routes`.
"""

from allocator.server.web.page.routes import page_routes

__all__ = ["page_routes"]
