"""Parses addresses: whether gRPC can listen on them, and whether only this machine reaches them.

Command-line tools also use this, so it imports nothing slow.
"""

import errno
import ipaddress
import os
import re
import socket

_HOST_PORT = re.compile(r"(\[[0-9a-fA-F:.%]+\]|[^\[\]:/\s]+):([0-9]{1,5})")


def target(text: str) -> str:
    """Check an address that gRPC can listen on. Raises ValueError if it is invalid."""
    if text.startswith("unix:"):
        path = text.removeprefix("unix:")
        if not path.startswith("/"):
            message = "needs an absolute path after 'unix:', as in 'unix:/run/allocator.sock'"
            raise ValueError(message)
        if len(path.encode()) > 107:  # sockaddr_un has 108, the last of them 0
            message = "is too long; the path of a Unix socket has at most 107 bytes"
            raise ValueError(message)
        return text
    match = _HOST_PORT.fullmatch(text)
    if not match or int(match[2]) > 65535:
        message = "must be host:port with a port of at most 65535, [IPv6]:port, or unix:/path"
        raise ValueError(message)
    return text


def is_local(text: str) -> bool:
    """Whether only this machine reaches an address: a Unix socket, or a port of loopback.

    >>> is_local("127.0.0.1:5056"), is_local("127.elsewhere.org:5056"), is_local("[::1]:5056")
    (True, False, True)
    """
    return text.startswith(("unix:", "unix-abstract:")) or is_loopback(text.rpartition(":")[0])


def is_loopback(host: str) -> bool:
    """Whether a host name or address refers to the machine that resolves it."""
    if host.lower() == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return False
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


def why_not_bound(text: str, error: OSError, options: str) -> str:
    """Say why an address cannot be bound; `options`: those that set it."""
    resolved = not isinstance(error, socket.gaierror)
    why = os.strerror(error.errno or 0) if resolved else error.strerror
    mend = f"set {options} to another"
    if resolved and error.errno == errno.EACCES:
        mend = f"privileged ports need root or CAP_NET_BIND_SERVICE; grant it, or {mend}"
    return f"{text} cannot be bound: {why}; {mend}"


def seen_from_afar(text: str, host: str) -> str:
    """Return the address by which other machines reach a process that listens on `host`.

    >>> seen_from_afar("0.0.0.0:5056", "a"), seen_from_afar("10.0.0.1:5056", "a")
    ('a:5056', '10.0.0.1:5056')
    >>> seen_from_afar("127.0.0.1:5056", "a")
    '127.0.0.1:5056 on a'
    """
    if is_local(text):
        return f"{text} on {host}"
    listens, _, port = text.rpartition(":")
    return f"{host}:{port}" if listens in ("0.0.0.0", "[::]") else text  # noqa: S104
