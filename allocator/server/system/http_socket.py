"""The socket for HTTP: made by the process that decides, served by its observer.

So a wrong address ends the start, and requests wait while an observer is started anew.
"""

import os
import socket

BACKLOG = 64
"""Connections that wait to be accepted."""


def http_socket(host: str, port: int) -> socket.socket:
    """Listen; port 0: any that is free. Raises OSError where that is not possible."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        both = family == socket.AF_INET6  # [::] is every address, of either version
        return socket.create_server(
            address[:2], family=family, backlog=BACKLOG, dualstack_ipv6=both
        )
    except socket.gaierror as error:
        why = error.strerror
        raise OSError(error.errno, f"http cannot listen on {host}:{port}: {why}") from None
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise OSError(error.errno, f"http cannot listen on {host}:{port}: {why}") from None
