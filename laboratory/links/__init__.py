"""Connections from the emulated master to an allocator.

Start with `base`. `stream` speaks the real protocol; `sidecar_process` runs a real sidecar.
"""
