"""A real sidecar in session that is scraped, and a real Prometheus that scrapes it."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from allocator.core import (
    AddAgent,
    AddFramework,
    AgentInfo,
    Define,
    Event,
    FrameworkInfo,
    Kind,
    SetWeights,
)
from allocator.wire import ModuleFigures, write_figures
from tests.integration.sessions.live_session import Session
from tests.server.metrics.scraping import Samples, series
from tests.server.sidecar_process import SidecarProcess

DEPLOY = Path(__file__).parents[3] / "deploy" / "prometheus"
FRAMEWORKS_MAX = 3
FAIR_S = 120.0
"""Time within which fair shares and unmet demand are computed, even on a slow machine."""

CLUSTER: tuple[Event, ...] = (
    Define({0: Kind("cpus"), 1: Kind("mem")}, {1: "eng", 2: "ops"}),
    SetWeights({"eng": 2.0}),
    *(AddFramework(n, FrameworkInfo(f"id-{n}", name=f"app {n}"), (1 + n % 2,)) for n in (1, 2)),
    *(AddAgent(n, AgentInfo(f"agent-{n}"), {0: 4000, 1: 8_192_000}) for n in (1, 2)),
)


class Scraped(Session):
    """A sidecar in session that is scraped."""

    def text(self, page: str = "metrics") -> str:
        return self.process.page(f"/{page}")[1]

    def samples(self) -> Samples:
        return self.process.scraped()


@pytest.fixture(scope="module")
def process(tmp_path_factory) -> Iterator[SidecarProcess]:
    """A sidecar with a journal, so that the journal's metrics exist."""
    journal = tmp_path_factory.mktemp("journal") / "journal"
    limit, often = f"metrics.frameworks_max={FRAMEWORKS_MAX}", "metrics.fair_share_every_s=0.1"
    flags = [limit, often, f"journal.path={journal}"]
    with SidecarProcess(*flags) as running:
        yield running


@pytest.fixture
def sidecar(process) -> Iterator[Scraped]:
    running = Scraped(process, CLUSTER)
    running.module.batch(figures=write_figures(ModuleFigures()))
    deadline_s = time.monotonic() + FAIR_S
    computed = "role_fair_share", "agents_missing"
    while not all(series(running.samples(), name) for name in computed):
        assert time.monotonic() < deadline_s
        time.sleep(0.1)
    yield running
    running.module.leave()
    list(running.module.heard())
    running.channel.close()
