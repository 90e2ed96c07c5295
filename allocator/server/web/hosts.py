"""Under which names a request may come: a browser may be led here by a page of somebody else's.

Such a page has a name of its own on the internet, leads it to this machine once it is loaded, and
asks as it likes; then its name stands in `Host` (DNS rebinding). An address, or a name that nobody
can own there, is no such name: so whoever scrapes by one goes on.
"""

import ipaddress
import socket
from collections.abc import Iterable

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from allocator.server.config.checks import ANY_NAME, is_loopback

SHOWN = 100
"""Characters of a name that is refused."""


class KnownHosts:
    """Answers requests for names that are ours alone."""

    def __init__(self, app: ASGIApp, names: Iterable[str]) -> None:
        """Stand before an application.

        `names`: names of ours, beside addresses, names without a dot, and that of this machine.
        """
        self._app = app
        self._names = {_plain(each) for each in (*names, socket.gethostname())}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse."""
        host = host_of(Headers(scope=scope))
        if self.knows(host):
            await self._app(scope, receive, send)
            return
        name = host if len(host) <= SHOWN else f"{host[:SHOWN]}..."
        text = f"Host = {name!a}: this is no name of the sidecar's; add it to http.names\n"
        await PlainTextResponse(text, 403)(scope, receive, send)

    def knows(self, host: str) -> bool:
        """Whether a request for this host is for us; who names none is no browser."""
        name = _plain(host)
        known = ANY_NAME in self._names or name in self._names
        return known or "." not in name.strip("[]") or is_loopback(host) or _is_address(host)


def host_of(headers: Headers) -> str:
    """Whom a request is for, as it says itself, without the port."""
    given = headers.get("host", "")
    host, _, port = given.rpartition(":")
    return host if host and port.isdecimal() else given


def _plain(name: str) -> str:
    return name.lower().removesuffix(".")


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True
