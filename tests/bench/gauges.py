"""Small pieces of work that show whether the sidecar has become slower; the gate runs them.

Each is a real part of what a sidecar does, small enough to be done some thousand times a minute.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count

import numpy as np

from allocator.core import (
    Allocator,
    Decisions,
    Event,
    Holdings,
    PolicySpec,
    SetQuota,
    Settings,
    Trail,
    Transition,
)
from allocator.lab.module_protocol import ModuleSession
from allocator.policies import build
from allocator.v1 import session_pb2 as pb
from allocator.wire import PROTOCOL_VERSION, Greeting
from allocator.wire.session.sidecar_session import SidecarSession
from tests.bench import bench_events
from tests.bench.bench_one_agent import hold_everything, release_all
from tests.bench.cluster import cluster, settle
from tests.bench.grid import Bench
from tests.bench.yardstick import clock_ms
from tests.world.rows import given_back, holdings_of, settled

Gauge = Iterator[float]
"""Does its work again and again, and tells the processor time of each in milliseconds."""

OFFERS = 128
"""So many launches in a batch: with the ends of as many tasks most of what a module sends."""

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


def used_up() -> Gauge:
    """Every role's limit is used up, and what is free on half of the agents nobody may have."""
    allocator = cluster(2000, 200, PolicySpec("drf", selection="random"), roles=200)
    half = int(allocator.state.agents.capacity[:, 0].sum()) // 400
    for role in range(1, 201):
        allocator.step(SetQuota(f"role-{role}", {}, {"cpus": half}))
    for now_ms in count(1000, 1000):
        made, took_ms = clock_ms(allocator.allocate, now_ms)
        settle(allocator, made)
        if now_ms > 3000:
            assert not len(made), "somebody was served"
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
    """A batch of single events of three sorts by turns, read and applied."""
    session, client = _session(bench_events.cluster())
    for batch in bench_events.accepts(300):
        data = client.batch(1, batch).SerializeToString()
        yield clock_ms(_answered, session, data)[1]


def launches() -> Gauge:
    """What a module says of ACCEPT calls that launch a task, and of tasks that end, in one batch.

    A master tells of an ACCEPT that the rest of the offer comes back, and then that the task's part
    comes into use. Where nothing else waits, a module sends both as they are: a row an event, the
    part in use first, or last where it was faster than the master. Offers are made in between.
    """
    session, client = _session(bench_events.cluster(disk=2**30))
    ended: list[Event] = []
    for now_ms in count(10_000, 10_000):
        agents = 1 + (np.arange(OFFERS) + now_ms // 10_000 * OFFERS) % bench_events.AGENTS
        offers = _offered(session, client, now_ms, agents)
        said: list[Event] = []
        running: list[Event] = []
        for row in range(OFFERS):
            offer = offers.cut(slice(row, row + 1))
            task = replace(offer, kind=np.array([0, 1]), amount=np.array([[1000, 1_048_576]]))
            rest = replace(offer, amount=offer.amount - np.array([1000, 1_048_576, 0]))
            launch: list[Event] = [Transition(task), given_back(rest, 5000)]
            said += launch if row % 2 else launch[::-1]
            said += ended[row : row + 1]
            running.append(given_back(task, used=True))
        ended = running
        data = client.batch(now_ms, said).SerializeToString()
        answer, took_ms = clock_ms(_answered, session, data)
        client.receive(answer)
        yield took_ms


def _offered(
    session: SidecarSession, client: ModuleSession, now_ms: int, agents: np.ndarray
) -> Holdings:
    """Have some agents offered, each as a whole."""
    asked = client.batch(now_ms, cycle=True, agents=agents.tolist())
    made = client.receive(_answered(session, asked.SerializeToString()))
    assert isinstance(made, Decisions)
    assert (len(made), made.kind.tolist()) == (len(agents), [0, 1, 2])
    client.settle(len(made))
    told = client.batch(now_ms, [settled(made)])
    client.receive(_answered(session, told.SerializeToString()))
    return holdings_of(made)


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


def _answered(session: SidecarSession, data: bytes) -> pb.SessionResponse:
    (answer,) = session.receive(data)
    assert answer.HasField("decisions"), answer
    return answer


GAUGES: dict[str, Callable[[], Gauge]] = {
    "re-offer, drf": lambda: reoffer(PolicySpec("drf", selection="random")),
    "re-offer, ps-dsf, whole tasks": lambda: reoffer(
        PolicySpec("ps-dsf", mode="characterised"), 500
    ),
    "limits used up": used_up,
    "one agent freed": one_agent,
    "single events": events,
    "launches": launches,
    "agents arrive": arrivals,
}
