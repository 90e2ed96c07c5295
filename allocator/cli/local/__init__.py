"""Commands that need no running sidecar: serve, replay, graphs."""
