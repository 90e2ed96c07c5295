"""The sidecar's side of a session, without sockets: messages in, messages out.

Start with `sidecar`.
"""
