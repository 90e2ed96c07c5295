"""Commands that call a running sidecar. Start with `connection`."""
