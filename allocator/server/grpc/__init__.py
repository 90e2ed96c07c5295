"""The gRPC side: listeners, who may call, and the services themselves.

Begin with `service` (the module's session) and `admin` (operators).
"""
