"""The sidecar's side of a session, without sockets: messages in, messages out.

Begin with `sidecar`.
"""
