"""Commands that need no running sidecar: serve, replay, graphs.

Begin with `serve`. They import what they run only then, so that help is quick.
"""
