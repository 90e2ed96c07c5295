"""The HTTP socket: the deciding process opens it, and its observer serves it.

A wrong address therefore prevents the start, and requests wait while the observer restarts.
"""

import errno
import socket
import time

from allocator.server.system.addresses import why_not_bound

TAKEN_S = 2.0
"""Time to wait for an address in use, perhaps by the observer of a sidecar that was just killed."""

BACKLOG = 64


def http_socket(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0: any free port. Raises OSError if it cannot listen."""
    until_s = time.monotonic() + TAKEN_S
    while True:
        try:
            return _listen(host, port)
        except OSError as error:
            if error.errno == errno.EADDRINUSE and time.monotonic() < until_s:
                time.sleep(0.05)
                continue
            text = why_not_bound(f"{host}:{port}", error, "http.host or http.port")
            raise OSError(error.errno, text) from None


def _listen(host: str, port: int) -> socket.socket:
    family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    both = family == socket.AF_INET6  # [::] is all addresses, of both versions
    return socket.create_server(address[:2], family=family, backlog=BACKLOG, dualstack_ipv6=both)
