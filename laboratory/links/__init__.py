"""Connections from the emulated master to an allocator.

Begin with `base`. `stream` speaks the real protocol; `sidecar_process` runs a real sidecar.
"""
