"""The HTTP socket: the deciding process opens it, and its observer serves it.

A wrong address therefore prevents the start, and requests wait while the observer restarts.
"""

import errno
import os
import socket
import time

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
            why = (
                error.strerror
                if isinstance(error, socket.gaierror)
                else os.strerror(error.errno or 0)
            )
            mend = "set http.host or http.port to another"
            if error.errno == errno.EACCES:
                mend = f"privileged ports need root or CAP_NET_BIND_SERVICE; grant it, or {mend}"
            text = f"{host}:{port} cannot be bound: {why}; {mend}"
            raise OSError(error.errno, text) from None


def _listen(host: str, port: int) -> socket.socket:
    family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    both = family == socket.AF_INET6  # [::] is all addresses, of both versions
    return socket.create_server(address[:2], family=family, backlog=BACKLOG, dualstack_ipv6=both)
