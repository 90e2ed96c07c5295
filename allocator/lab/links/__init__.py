"""What stands between the emulated master and whatever decides.

Begin with `base`. `stream` and `sidecar_process` are the real protocol and the real sidecar.
"""
