"""Commands that speak to a running sidecar.

Begin with `connection`.
"""
