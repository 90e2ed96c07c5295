"""Commands that need no running sidecar: serve, replay, graphs.

Start with `serve`. To keep `--help` quick, a command imports what it needs only when it runs.
"""
