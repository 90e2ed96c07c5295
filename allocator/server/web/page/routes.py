"""The routes of the pages."""

import base64
import hashlib
import threading
from collections.abc import Callable
from functools import cache, partial
from importlib import resources
from typing import Any, Literal, TypeVar

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from allocator.server.views.drains import drain_of
from allocator.server.views.rejected import RejectedError
from allocator.server.views.views import Views
from allocator.server.web.http import busy, is_from_here, plain_text
from allocator.server.web.page import agent_map, look, tables, usage
from allocator.server.web.page.look import (
    FAIR_FRESH_S,
    FRESH_S,
    QUESTION_S,
    Latest,
    Look,
    take,
)
from allocator.usage.buckets import BY
from allocator.v1 import admin_pb2 as pb
from allocator.v1 import explain_pb2

PAGES_MAX = 4
"""Maximum number of pages that are being made or wait, so that probes and scrapes have room."""

FAIR_AGENTS_MAX = 5000
FAIR_CLIENTS_MAX = 2000
"""Maximum number of clients for which the page computes fair shares: copies of larger books would
delay decisions."""

REFRESH_S = 5
REFRESH_MAX_S = 3600

USAGE_FRESH_S = 10.0

KINDS = ("framework", "role", "agent")
SORTS = ("waiting", "share", "name")

_T = TypeVar("_T")

_INDEX = "/metrics  for Prometheus\n/healthz  alive\n/readyz   ready to take sessions\n"

_CLOSED = """\
the status page is shown on this machine alone, at localhost or a loopback address; set
http.page = "all" to show it to every client of this port
"""


def page_routes(views: Views, allowed: Literal["local", "all", "off"]) -> list[Route]:
    """Return the routes of the status page; `allowed`: who may see it, as `http.page` says."""
    if allowed == "off":
        return [Route("/", lambda _request: plain_text(200, _INDEX))]
    pages = Pages(views, local_only=allowed == "local")
    return [
        Route("/", partial(pages.answer, pages.status)),
        Route("/shares", partial(pages.answer, pages.shares)),
        Route("/agents", partial(pages.answer, pages.agents)),
        Route("/explain", partial(pages.answer, pages.explain)),
        Route("/usage", partial(pages.answer, pages.usage)),
    ]


class Pages:
    """Makes the pages."""

    def __init__(self, views: Views, *, local_only: bool) -> None:
        """Show these views; `local_only`: only to clients on this machine."""
        self._views = views
        self._local_only = local_only
        self._places = threading.BoundedSemaphore(PAGES_MAX)
        self._looks = Latest(partial(take, views), FRESH_S)
        self._fair = Latest(self._take_fair, FAIR_FRESH_S)
        self._usage = {by: Latest(partial(self._take_usage, by), USAGE_FRESH_S) for by in BY}

    def answer(self, page: Callable[[Request], Response], request: Request) -> Response:
        """Make a page, if the client may see it and not too many are being made."""
        if self._local_only and not is_from_here(request):
            return plain_text(403, _CLOSED)
        if not self._places.acquire(blocking=False):
            return busy("too many pages at a time")
        try:
            return page(request)
        except RejectedError as error:
            return _render("message.html", 400, head="This cannot be shown", text=str(error))
        except TimeoutError:
            text = "The observer is busy. Ask again in a moment."
            return _render("message.html", 503, head="No answer yet", text=text)
        finally:
            self._places.release()

    def status(self, request: Request) -> Response:
        look, refresh_s = self._look(), _refresh_s(request, REFRESH_S)
        agents = self._map(look, request)
        clients = look.shares.clients
        return _render(
            "status.html",
            look=look,
            refresh_s=refresh_s,
            roles=tables.tree(look.shares.roles),
            depth=tables.depth,
            frameworks=tables.frameworks(clients, tables.FRAMEWORKS_MAX),
            offers=tables.on_offer(clients),
            waiting=len({each.framework_id for each in clients if each.waited_cycles}),
            map=agents,
            cells=agents.cells(),
            bands=tables.bars(agents.bands()),
            cycles=tables.cycle_bars(look),
            kinds=KINDS,
            drain_of=drain_of,
            compared=tables.apart(look.shadow) if look.shadow else (),
        )

    def shares(self, request: Request) -> Response:
        role = request.query_params.get("role", "")
        sort = _choice(request, "sort", SORTS)
        look, shares, problem = self._look(), None, ""
        found = look.shares
        if request.query_params.get("fair"):
            shares, problem = self._fair_shares(look)
            found = shares or found
        if role and role not in {each.role for each in found.roles}:
            raise RejectedError(f"role = {role!r}: there is no such role")
        inside = [each for each in found.clients if _is_below(each.role, role)]
        return _render(
            "shares.html",
            look=look,
            refresh_s=_refresh_s(request, 0),
            role=role,
            sort=sort,
            sorts=SORTS,
            shares=found,
            roles=tables.tree(
                (each for each in found.roles if _is_below(each.role, role)), tables.LISTED_MAX
            ),
            depth=tables.depth,
            frameworks=tables.frameworks(inside, tables.LISTED_MAX, sort),
            problem=problem,
        )

    def agents(self, request: Request) -> Response:
        look = self._look()
        agents = self._map(look, request)
        first = _number(request, "first", 0, len(agents.names))
        count = _number(request, "count", len(agents.names), len(agents.names))
        return _render(
            "agents.html",
            look=look,
            refresh_s=_refresh_s(request, 0),
            map=agents,
            cells=agents.cells(first, count),
            first=first,
            bands=tables.bars(agents.bands()),
        )

    def explain(self, request: Request) -> Response:
        kind = _choice(request, "kind", KINDS)
        name = request.query_params.get("name", "")
        if not name:
            return RedirectResponse("/#explain", 303)
        answer, problem = self._explained(kind, name)
        return _render(
            "explain.html",
            404 if problem else 200,
            refresh_s=_refresh_s(request, 0),
            kind=kind,
            name=name,
            kinds=KINDS,
            answer=answer,
            problem=problem,
        )

    def usage(self, request: Request) -> Response:
        by = _choice(request, "by", BY)
        found = self._usage[by].get()
        if found is None:
            raise TimeoutError
        return _render(
            "usage.html",
            refresh_s=_refresh_s(request, 0),
            usage=usage.draw(*found, request.query_params.get("resource", "")),
            by=by,
            choices=BY,
            days=usage.DAYS,
        )

    def _take_usage(self, by: str) -> tuple[pb.GetUsageResponse, pb.GetUsageResponse]:
        answers = (
            self._views.usage(self._ask, usage.request(by, daily=daily)) for daily in (True, False)
        )
        daily, whole = answers
        return daily, whole

    def _explained(self, kind: str, name: str) -> tuple[explain_pb2.ExplainResponse | None, str]:
        problem = ""
        # Links have exact names; users may type blanks around them.
        for each in dict.fromkeys((name, name.strip())):
            try:
                question = explain_pb2.ExplainRequest()
                setattr(question, kind, each)
                return self._views.explain(self._ask, question), ""
            except RejectedError as error:
                problem = problem or str(error)
        return None, problem

    def _ask(self, work: Callable[[], _T]) -> _T:
        return self._views.books.read(work, QUESTION_S)

    def _look(self) -> Look:
        look = self._looks.get()
        if look is None:
            raise TimeoutError
        return look

    def _map(self, look: Look, request: Request) -> agent_map.AgentMap:
        return agent_map.draw(look.agents, request.query_params.get("resource", ""))

    def _fair_shares(self, look: Look) -> tuple[pb.GetSharesResponse | None, str]:
        """Return the shares with fair shares, or why there are none."""
        many = look.status.agents > FAIR_AGENTS_MAX or len(look.shares.clients) > FAIR_CLIENTS_MAX
        if many:
            return None, "the cluster is large: use `mesos-allocator shares --fair`"
        shares = self._fair.get()
        return shares, "" if shares else "the observer is busy; ask again in a moment"

    def _take_fair(self) -> pb.GetSharesResponse:
        request = pb.GetSharesRequest(fair=True)
        return self._views.shares(self._ask, request, scored=False)


def _is_below(path: str, role: str) -> bool:
    return not role or path == role or path.startswith(f"{role}/")


def _choice(request: Request, key: str, choices: tuple[str, ...]) -> str:
    """Return the parameter, one of the choices; by default the first."""
    given = request.query_params.get(key, choices[0])
    if given not in choices:
        raise RejectedError(f"{key} = {given!r}: must be one of {', '.join(choices)}")
    return given


def _number(request: Request, key: str, default: int, most: int) -> int:
    given = request.query_params.get(key, str(default))
    if not (given.isascii() and given.isdecimal() and len(given) <= 9 and int(given) <= most):
        raise RejectedError(f"{key} = {given!r}: must be a number from 0 to {most}")
    return int(given)


def _refresh_s(request: Request, default: int) -> int:
    """Interval in seconds at which the page is reloaded; 0: never."""
    return _number(request, "refresh", default, REFRESH_MAX_S)


def _render(template: str, status: int = 200, **values: Any) -> Response:  # noqa: ANN401
    values = {"refresh_s": 0, **values}
    text = look.labelled(_environment().get_template(template).render(values))
    return HTMLResponse(text, status, {"Content-Security-Policy": _policy()})


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=tables.printable,
    )
    environment.filters.update(tables.FILTERS)
    environment.globals["style"] = _style()
    return environment


@cache
def _style() -> str:
    return resources.files(__package__).joinpath("templates/page.css").read_text("utf-8")


@cache
def _policy() -> str:
    """Return a policy by which only the page itself and its style sheet are loaded."""
    digest = base64.b64encode(hashlib.sha256(_style().encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; form-action 'self';"
        " base-uri 'none'; frame-ancestors 'none'"
    )
