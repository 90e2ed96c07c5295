"""What programs ask for by HTTP: /metrics, /healthz and /readyz."""

import threading
from collections.abc import Callable

import structlog
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from allocator.server.web.http import plain_text

Check = Callable[[], str]
"""Says what is wrong; empty where nothing is."""

_log = structlog.get_logger()


def nothing_to_add() -> str:
    """Say nothing beside that all is well."""
    return ""


def probe_routes(
    registry: CollectorRegistry, healthy: Check, ready: Check, remark: Callable[[], str]
) -> list[Route]:
    """Give who answers.

    `healthy`, `ready`: say what is wrong.
    `remark`: what /readyz adds where nothing is.
    """
    turn = threading.Lock()  # one at a time: so that many scrapes hold nothing up

    def metrics(request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        try:
            with turn:
                body = encode(registry)
        except Exception:  # noqa: BLE001 - whatever it is, the scraper is told.
            _log.exception("metrics could not be written")
            return plain_text(500, "metrics could not be written; see the log\n")
        return Response(body, headers={"Content-Type": content_type})

    return [
        Route("/metrics", metrics),
        Route("/healthz", lambda _request: _checked(healthy, nothing_to_add)),
        Route("/readyz", lambda _request: _checked(ready, remark)),
    ]


def _checked(check: Check, remark: Callable[[], str]) -> Response:
    problem = check()
    if problem:
        return plain_text(503, f"{problem}\n")
    added = remark()
    return plain_text(200, f"ok{added and ', ' + added}\n")
