"""The gRPC servers: listeners, access control, and the services themselves.

Start with `service` (the module's session) and `admin` (operators).
"""
