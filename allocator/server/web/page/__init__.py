"""The status page, for operators' browsers and wall displays.

It is rendered here completely, without scripts or external resources, and is read-only. Its data
comes from the views that the commands use (`allocator.server.views.views`). Start with `routes`.
"""

from allocator.server.web.page.routes import page_routes

__all__ = ["page_routes"]
