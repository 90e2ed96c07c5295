"""The process: start, reload and shutdown.

Start with `main`, which builds everything; nothing imports this package.
"""
