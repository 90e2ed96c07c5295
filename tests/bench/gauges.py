"""Small pieces of work that show whether the sidecar has become slower; the gate runs them.

Each is a real part of what a sidecar does, small enough to be done some thousand times a minute.
"""

from collections.abc import Callable, Iterator
from itertools import count

import numpy as np

from allocator.core import Allocator, PolicySpec, Settings, Trail
from allocator.lab.module_protocol import ModuleSession
from allocator.policies import build
from allocator.v1 import session_pb2 as pb
from allocator.wire import PROTOCOL_VERSION, Greeting
from allocator.wire.session.server_session import SidecarSession
from tests.bench import bench_events
from tests.bench.bench_one_agent import hold_everything, release_all
from tests.bench.cluster import cluster, settle
from tests.bench.grid import Bench
from tests.bench.yardstick import clock_ms

Gauge = Iterator[float]
"""Does its work again and again, and tells the processor time of each in milliseconds."""

WHOLE = "characterised"
WELCOME = pb.Welcome(protocol_version=PROTOCOL_VERSION, sidecar_id="bench", kinds_max=512)


def reoffer(spec: PolicySpec, agents: int = 2000) -> Gauge:
    """Everything is free, and is offered again."""
    bench = Bench(agents, agents // 10, spec)
    made, _ = bench.cycle()
    while True:
        bench.give_back(made)
        made, took_ms = bench.cycle()
        assert len(made), "nobody was served"
        yield took_ms


def one_agent() -> Gauge:
    """One agent is freed where ten thousand are full."""
    allocator = cluster(10_000, 1000, PolicySpec("drf"))
    filled = hold_everything(allocator, 20_000, 10_000, 1000)
    chance = np.random.default_rng(1)
    for now_ms in count(1000, 10):
        agent = int(chance.choice(filled))
        release_all(allocator, agent)
        made, took_ms = clock_ms(allocator.allocate, now_ms, np.array([agent]))
        assert len(made), "nobody was served"
        settle(allocator, made)
        yield took_ms


def events() -> Gauge:
    """A batch of single events by turns, as ACCEPT calls make them, read and applied."""
    session, client = _session(bench_events.cluster())
    for batch in bench_events.accepts(300):
        data = client.batch(1, batch).SerializeToString()
        yield clock_ms(_answered, session, data)[1]


def arrivals() -> Gauge:
    """A new master adds its agents."""
    state = bench_events.cluster()
    few = state[: 1 + bench_events.FRAMEWORKS + 2000]
    while True:
        client = ModuleSession(Greeting("bench", "bench", 1))
        session = new_session()
        client.receive(session.receive(client.hello().SerializeToString())[0])
        said = [each.SerializeToString() for each in client.snapshot(few, sequence=0, clock_ms=1)]
        yield clock_ms(_hear, session, said)[1]


def _session(state: bench_events.State) -> tuple[SidecarSession, ModuleSession]:
    session, client = new_session(), ModuleSession(Greeting("bench", "bench", 1))
    client.receive(session.receive(client.hello().SerializeToString())[0])
    for request in client.snapshot(state, sequence=0, clock_ms=1):
        session.receive(request.SerializeToString())
    return session, client


def new_session() -> SidecarSession:
    """Make the sidecar's side of a session, with DRF."""
    settings = Settings(policy=PolicySpec("drf"))
    return SidecarSession(lambda _: Allocator(build, settings, trail=Trail()), WELCOME)


def _hear(session: SidecarSession, said: list[bytes]) -> None:
    for each in said:
        answers = session.receive(each)
        assert not any(answer.HasField("error") for answer in answers), answers


def _answered(session: SidecarSession, data: bytes) -> None:
    (answer,) = session.receive(data)
    assert answer.HasField("decisions"), answer


GAUGES: dict[str, Callable[[], Gauge]] = {
    "re-offer, drf": lambda: reoffer(PolicySpec("drf", selection="random")),
    "re-offer, ps-dsf, whole tasks": lambda: reoffer(
        PolicySpec("ps-dsf", mode="characterised"), 500
    ),
    "one agent freed": one_agent,
    "single events": events,
    "agents arrive": arrivals,
}
