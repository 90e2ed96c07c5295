"""HTTP: one small listener, the probes, and the status page. Start with `http`."""
