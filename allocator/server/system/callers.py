"""Identifies callers, by what gRPC and the kernel know of the process at the other end.

A client certificate names its owner. For a peer on this machine, the kernel knows the user: for a
TCP connection by its row in /proc/net, for a Unix socket by the socket itself. gRPC does not reveal
which connection of a Unix socket a call used, so if several users are connected, all are named.
"""

import os
import pwd
import socket
import struct
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

import grpc

_CREDENTIALS = struct.Struct("3i")
_NAMES = ("x509_common_name", "x509_subject_alternative_name")
_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")


class Caller(NamedTuple):
    """The identity of a caller.

    `address`: such as ``10.0.0.1:4711``; ``unix`` for a Unix socket.
    `certificate`: names in the client's certificate; empty: none.
    `users`: local users that the caller may be; empty: unknown.
    """

    address: str
    certificate: str
    users: tuple[str, ...]

    def __str__(self) -> str:
        who = []
        if self.certificate:
            who.append(f"certificate {self.certificate}")
        if self.users:
            who.append(f"user {' or '.join(self.users)}")
        return f"{', '.join(who) or 'unknown'} at {self.address}"


def caller_of(context: grpc.ServicerContext, sockets: tuple[str, ...] = ()) -> Caller:
    """Identify the caller; `sockets`: paths of this process's Unix sockets."""
    address = unquote(context.peer())
    family, _, rest = address.partition(":")
    if family == "unix":
        return Caller("unix", "", tuple(sorted(set(map(_user, _of_unix_sockets(sockets))))))
    user = _of_connection(rest)
    return Caller(rest, _certificate(context), () if user is None else (_user(user),))


def _certificate(context: grpc.ServicerContext) -> str:
    return ", ".join(certificate_names(context))


def certificate_names(context: grpc.ServicerContext) -> list[str]:
    """Names in the client's certificate, the common name first; none without a certificate."""
    known: Mapping[str, Iterable[bytes]] = context.auth_context()  # type: ignore[assignment]
    found = [value.decode("utf-8", "replace") for key in _NAMES for value in known.get(key, ())]
    return list(dict.fromkeys(filter(None, found)))


def _user(number: int) -> str:
    with suppress(KeyError):
        return f"{pwd.getpwuid(number).pw_name} ({number})"
    return str(number)


def _of_unix_sockets(paths: tuple[str, ...]) -> Iterator[int]:
    """Yield the users connected to Unix sockets; none if no file descriptor is left."""
    names: list[str] = []
    with suppress(OSError):
        names = os.listdir("/proc/self/fd")  # noqa: PTH208 - their names are numbers
    for name in names:
        with suppress(OSError), _dup(int(name)) as peer:
            if peer.family == socket.AF_UNIX and peer.getsockname() in paths:
                size = _CREDENTIALS.size
                peer.getpeername()  # a listening socket has no peer
                credentials = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
                _, user, _ = _CREDENTIALS.unpack(credentials)
                yield user


def _dup(number: int) -> socket.socket:
    copy = os.dup(number)
    try:
        return socket.socket(fileno=copy)
    except OSError:
        os.close(copy)
        raise


def _of_connection(address: str) -> int | None:
    """Return the user at the other end of a TCP connection within this machine; None: unknown."""
    host, _, port = address.rpartition(":")
    for table in _TABLES:
        with suppress(OSError, ValueError):
            for line in Path(table).read_text(encoding="ascii").splitlines()[1:]:
                fields = line.split()
                established = fields[3] == "01"
                if established and _is_address(fields[1], host.strip("[]"), int(port)):
                    return int(fields[7])
    return None


def _is_address(text: str, host: str, port: int) -> bool:
    packed, _, number = text.partition(":")
    if int(number, 16) != port:
        return False
    words = bytes.fromhex(packed)
    # Each 32-bit word is in the machine's byte order.
    octets = b"".join(
        struct.pack("!I", *struct.unpack("=I", words[at : at + 4]))
        for at in range(0, len(words), 4)
    )
    family = socket.AF_INET if len(octets) == 4 else socket.AF_INET6
    shown = socket.inet_ntop(family, octets)
    return shown.removeprefix("::ffff:") == host.removeprefix("::ffff:")
