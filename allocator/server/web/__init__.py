"""HTTP: one small listener, the probes, and the status page.

Begin with `http`.
"""
