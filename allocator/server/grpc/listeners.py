"""Opens the addresses that the sidecar listens on."""

import errno
import grp
import os
import pwd
import socket
import stat
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import grpc

from allocator.server.config.sections import ListenSection
from allocator.server.grpc.access import Certificates
from allocator.server.grpc.calls import CALLS_MAX, CONNECTIONS_MAX, Calls
from allocator.server.system.addresses import why_not_bound

UNIX = "unix:"
CONNECT_S = 1.0


class ListenError(OSError):
    """Listening failed; the text has the address, the reason and the fix."""


OPTIONS = (
    # Without this, two sidecars on one port would share the sessions of a master.
    ("grpc.so_reuseport", 0),
    # Detect peers that vanished silently.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    # Allow modules to ping often, which they do to detect lost connections.
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 5_000),
    ("grpc.http2.max_ping_strikes", 0),
    ("grpc.max_send_message_length", -1),
    # Close idle connections, which count against the maximum number.
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.max_connection_idle_ms", 15_000),
    ("grpc.max_allowed_incoming_connections", CONNECTIONS_MAX),
    ("grpc.max_concurrent_streams", 64),
)


def claim_addresses(targets: Iterable[str], key: str = "listen.targets") -> None:
    """Check that all addresses can be listened on, before anything slow begins.

    `key`: the configuration key of the addresses, for messages.

    Raises ListenError; so does `listen`, if an address is taken in the meantime.
    """
    for target in targets:
        if target.startswith(UNIX):
            path = Path(target.removeprefix(UNIX))
            _check_directory(path)
            _remove_stale(path)
        else:
            host, _, port = target.rpartition(":")
            _claim(host.strip("[]"), int(port), target, key)


def _claim(host: str, port: int, target: str, key: str) -> None:
    """Bind a port and release it; port 0 always succeeds."""
    if port == 0:
        return
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise ListenError(why_not_bound(target, error, key)) from None
    for family, kind, protocol, _, address in found:
        try:
            with socket.socket(family, kind, protocol) as probe:
                # As gRPC does, so that a port can be reused as soon as its listener is closed.
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(address)
        except OSError as error:
            if error.errno in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL) and len(found) > 1:
                continue  # the name has several addresses, and this one is not of this machine
            raise ListenError(why_not_bound(target, error, key)) from None


def new_server(calls: Calls, message_bytes_max: int) -> grpc.Server:
    """Make a server for these calls; `message_bytes_max`: largest message that it reads."""
    return grpc.server(
        ThreadPoolExecutor(CALLS_MAX, "grpc"),
        options=[*OPTIONS, ("grpc.max_receive_message_length", message_bytes_max)],
        interceptors=[calls],
        maximum_concurrent_rpcs=CALLS_MAX,
    )


def listen(server: grpc.Server, section: ListenSection) -> list[str]:
    """Bind a server to all targets; return the addresses with actual ports. Raises ListenError."""
    bound = []
    for target in section.targets:
        if target.startswith(UNIX):
            path = Path(target.removeprefix(UNIX))
            _listen_unix(server, path, section.unix_mode, section.unix_owner)
            bound.append(target)
        else:
            # Separate credentials for each listener, since each must detect changes of the files.
            port = _add(server, target, _credentials(section))
            bound.append(f"{target.rpartition(':')[0]}:{port}")
    return bound


def _credentials(section: ListenSection) -> grpc.ServerCredentials | None:
    if not section.tls_cert:
        return None
    try:
        return Certificates(section).credentials()
    except OSError as error:
        raise ListenError(f"the files for TLS cannot be read: {error}") from None


def _add(server: grpc.Server, target: str, credentials: grpc.ServerCredentials | None) -> int:
    try:
        if credentials is None:
            port = server.add_insecure_port(target)
        else:
            port = server.add_secure_port(target, credentials)
    except (RuntimeError, ValueError) as error:
        raise ListenError(f"{target} cannot be bound: {error}") from None
    if port == 0:
        raise ListenError(f"{target} cannot be bound; is it in use?")
    return port


def _listen_unix(server: grpc.Server, path: Path, mode: int, owner: str) -> None:
    """Listen on a Unix socket that only users allowed by `mode` and `owner` can open."""
    _check_directory(path)
    _remove_stale(path)
    # Create it without permissions, until its owner is set.
    with _umask(0o777):
        _add(server, f"{UNIX}{path}", None)
    _give(path, owner)
    path.chmod(mode)


def _give(path: Path, owner: str) -> None:
    """Give a socket file to a user, a group, or both (``user:group``); empty: change nothing."""
    user, _, group = owner.partition(":")
    why = ""
    try:
        os.chown(path, _number(user, _user), _number(group, _group))
    except KeyError:
        why = "there is no such user or group; make it, or set listen.unix_owner to another"
    except PermissionError:
        why = (
            "this process may not: a user is for root alone, a group for its members"
            " (SupplementaryGroups= of the unit)"
        )
    if why:
        raise ListenError(f"{path} cannot be given to {owner}: {why}")


def _number(text: str, find: Callable[[str], int]) -> int:
    """Return the number of a user or group; -1, which changes nothing, if none is given."""
    if not text:
        return -1
    return int(text) if text.isdecimal() else find(text)


def _user(name: str) -> int:
    return pwd.getpwnam(name).pw_uid


def _group(name: str) -> int:
    return grp.getgrnam(name).gr_gid


def _check_directory(path: Path) -> None:
    directory = path.parent
    if not directory.is_dir():
        raise ListenError(f"{path} cannot be bound: there is no directory {directory}")
    status = directory.stat()
    foreign = stat.S_IWOTH | (stat.S_IWGRP if status.st_gid != os.getegid() else 0)
    if status.st_mode & foreign and not status.st_mode & stat.S_ISVTX:
        raise ListenError(
            f"{path} cannot be bound: others may write to {directory}, and so replace the"
            " socket; use a dedicated directory, such as /run/mesos-allocator"
        )


def _remove_stale(path: Path) -> None:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(status.st_mode):
        raise ListenError(f"{path} cannot be bound: it exists and is not a socket; remove it")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(CONNECT_S)
        try:
            probe.connect(str(path))
        except OSError as error:
            if error.errno not in (errno.ECONNREFUSED, errno.ENOENT):
                raise ListenError(f"{path} cannot be bound: {error}") from None
            path.unlink(missing_ok=True)
        else:
            raise ListenError(f"{path} cannot be bound: another process listens there")


@contextmanager
def _umask(mask: int) -> Iterator[None]:
    """Create files in this block without the permissions in the mask."""
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)
