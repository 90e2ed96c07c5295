"""Measures the cost of a manner of attack: processor time, memory, lines of pages."""

import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import ParamSpec, TypeVar

from allocator import policies
from allocator.core import Allocator, PolicySpec, SetCap, Settings
from allocator.server.config import Config, Flag, load
from allocator.server.engine.core_loop import CoreLoop
from allocator.server.metrics.scraping import MetricsServer
from allocator.server.system.http_socket import http_socket
from allocator.server.views import dump
from allocator.server.views.views import Views
from allocator.server.web.page import page_routes
from tests.hostile.words import Manner
from tests.server.in_process import observed, running

AGENTS = 8
"""Number of honest agents."""

BEFORE, INTERVALS = 3, 6
"""Number of intervals before the tenants come, and with them."""

_NEGATIVE = re.compile(r"[} ]-[\d.]+(?:e[+-]?\d+)?$")

_SET_ASIDE = re.compile(r'mesos_allocator_set_aside\{reason="(\w+)"\} ([1-9].*)')

_PAGES = {"page": "", "metrics": "metrics", "explain": "explain?kind=framework&name={tenant}"}

_P = ParamSpec("_P")
_T = TypeVar("_T")


@dataclass
class Figures:
    """The effects of a manner.

    core_s, brain_s: processor time since the tenants came.
    core_most_s, brain_most_s: maximum processor time of one message or line.
    memory_mib: growth of peak memory since the tenants came.
    ended: sessions that ended.
    wait: maximum number of consecutive intervals without an offer to the honest framework.
    lines: lines of the status page, of /metrics, and of the page that explains a tenant.
    page_s: processor time of all pages together.
    negative: metrics below zero, which overflowing sums would cause.
    set_aside: counts by reason or field: frameworks and agents with ignored input, corrected
        values, and errors that ended sessions.
    """

    core_s: float = 0.0
    brain_s: float = 0.0
    core_most_s: float = 0.0
    brain_most_s: float = 0.0
    memory_mib: float = 0.0
    ended: int = 0
    wait: int = 0
    lines: dict[str, int] = field(default_factory=dict)
    page_s: float = 0.0
    negative: list[str] = field(default_factory=list)
    set_aside: dict[str, int] = field(default_factory=dict)


class Meter:
    """Processor time of calls, total and maximum."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Start from zero."""
        self.whole_s = self.most_s = 0.0

    def metered(self, act: Callable[_P, _T]) -> Callable[_P, _T]:
        """Measure a call."""

        def metered(*words: _P.args, **options: _P.kwargs) -> _T:
            begun_s = time.process_time()
            try:
                return act(*words, **options)
            finally:
                took_s = time.process_time() - begun_s
                self.whole_s += took_s
                self.most_s = max(self.most_s, took_s)

        return metered


class PlanningLoop(CoreLoop):
    """The server's core loop, except that it computes plans itself instead of the observer."""

    def _new_allocator(self, settings: Settings) -> Allocator:
        allocator = super()._new_allocator(settings)
        allocator.plan_source.plans_here = True
        return allocator


def new_loop(manner: Manner) -> CoreLoop:
    """Make a sidecar whose threads have not started; the caller drives it."""
    settings = Settings(policy=PolicySpec(manner.policy, mode=manner.mode))
    for per, cap in manner.caps.items():
        settings.put(SetCap("hostile", per, cap))
    return PlanningLoop(
        Config(),
        build_policy=policies.build,
        substitute=policies.substitute(),
        sidecar_id="sidecar",
        settings=settings,
    )


def look(loop: CoreLoop, figures: Figures, tenant: str) -> None:
    """Request the status page, the metrics and an explanation of a tenant, as an operator does.

    Also dumps the whole state as JSON.
    """
    with running(loop), observed(loop) as views:
        _look(views, figures, tenant)


def _look(views: Views, figures: Figures, tenant: str) -> None:
    config, books = load(None, {}, [Flag("--set", "http.port", "0")]), views.books
    listener = http_socket("127.0.0.1", 0)
    server = MetricsServer(config, listener, books, (), page_routes(views, "local"))
    try:
        begun_s = time.process_time()
        for name, page in _PAGES.items():
            url = f"http://127.0.0.1:{server.port}/{page.format(tenant=tenant)}"
            try:
                lines = _asked(url).split("\n")
            except urllib.error.HTTPError as error:
                # Frameworks that left, or never came, cannot be explained.
                if (name, error.code) == ("explain", 404):
                    continue
                raise
            figures.lines[name] = len(lines)
            if name == "metrics":
                figures.negative = [each for each in lines if _NEGATIVE.search(each)]
                told = filter(None, map(_SET_ASIDE.fullmatch, lines))
                figures.set_aside |= {each[1]: int(float(each[2])) for each in told}
        figures.page_s = time.process_time() - begun_s
        json.loads(b"".join(dump.pieces(books.ask(lambda: dump.read(books)).result(60))))
    finally:
        server.close()


def _asked(url: str) -> str:
    """Repeat a request until it succeeds; a busy machine may first report a timeout."""
    while True:  # pytest-timeout bounds it
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as error:
            if error.code != HTTPStatus.SERVICE_UNAVAILABLE:
                raise
            time.sleep(1.0)


def begin_peak() -> float:
    """Reset the peak of memory; returns the current usage in MiB."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return _status_mib("VmRSS")


def peak_mib() -> float:
    """The peak of memory since `begin_peak`, in MiB."""
    return _status_mib("VmHWM")


def _status_mib(name: str) -> float:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    (line,) = (each for each in lines if each.startswith(name + ":"))
    return int(line.split()[1]) / 1024
