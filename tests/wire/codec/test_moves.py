"""Mixed holds, transitions and releases have the effect of their rows one by one.

The naive implementation is a second sidecar, which receives each row in a batch of its own.
"""

import re
from collections.abc import Iterator
from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from allocator.core import (
    AddAgent,
    AddFramework,
    AgentInfo,
    Allocator,
    Decisions,
    Define,
    Event,
    FrameworkInfo,
    Hold,
    Kind,
    Moves,
    PolicySpec,
    Release,
    RemoveFramework,
    SessionLimits,
    Settings,
    SetWhitelist,
    Trail,
    Transition,
    UpdateFramework,
)
from allocator.policies import build
from allocator.v1 import session_pb2 as pb
from allocator.wire import Greeting
from allocator.wire.session.sidecar_session import SessionCounts, SidecarSession
from laboratory.module_protocol import ModuleSession
from tests.core.checkpoint.test_checkpoint import kept, same
from tests.wire.dialogue import WELCOME
from tests.world.rows import holdings, settled

AGENTS, FRAMEWORKS, ROLES = 3, 3, 2
KINDS = {0: Kind("cpus"), 1: Kind("mem"), 2: Kind("mem", reserved_role="a", depth=1)}
TASK = (1000, 2000)
"""Amounts of cpus and mem of the smallest task."""


def cluster() -> list[Event]:
    capacity = {0: 8000, 1: 16_000, 2: 2000}
    return [
        Define(KINDS, {1: "a", 2: "b"}),
        *(
            AddFramework(row, FrameworkInfo(f"id-{row}", f"job-{row // 2}"), (1, 2))
            for row in range(1, FRAMEWORKS + 1)
        ),
        *(AddAgent(row, AgentInfo(f"agent-{row}"), capacity) for row in range(1, AGENTS + 1)),
    ]


class Host:
    """A sidecar's session, and a module's messages in it."""

    def __init__(self, filters: int) -> None:
        settings = Settings(policy=PolicySpec("drf"), learn_after=2, probe_after=2)
        self.trail, self.counts = Trail(), SessionCounts()
        self.allocator = Allocator(
            build, settings, SessionLimits(filters=filters), trail=self.trail
        )
        self.session = SidecarSession(lambda _: self.allocator, WELCOME, self.counts)
        self.module = ModuleSession(Greeting("twin", "twin", 1))
        self.clock_ms = 1000
        self._told(self.module.hello())
        for chunk in self.module.snapshot(cluster(), sequence=0, clock_ms=self.clock_ms):
            self._told(chunk)

    def _told(self, request: pb.SessionRequest) -> list[pb.SessionResponse]:
        answers = self.session.receive(request.SerializeToString())
        for answer in answers:
            if not answer.HasField("error"):
                self.decisions = self.module.receive(answer)
        return answers

    def batch(self, *events: Event, cycle: bool = False) -> str:
        """Send events; returns the error if there is one."""
        (answer,) = self._told(self.module.batch(self.clock_ms, events, cycle=cycle))
        return f"{answer.error.field}: {answer.error.message}" if answer.HasField("error") else ""

    def cycle(self) -> bytes:
        """Run a cycle whose decisions all become offers; returns the decisions."""
        self.clock_ms += 700
        assert not self.batch(cycle=True)
        made = self.decisions
        assert isinstance(made, Decisions)
        if len(made):
            assert not self.batch(settled(made))
        columns = made.framework, made.role, made.agent, made.amount
        return b"".join(column.tobytes() for column in columns)


def one_by_one(host: Host, event: Event) -> str:
    """Send each row by itself, unless the event is invalid as a whole."""
    if isinstance(event, Release | Transition) and is_possible(host, event):
        assert not any(host.batch(one) for one in rows_of(event))
        return ""
    return host.batch(event)


def rows_of(event: Hold | Moves | Release | Transition) -> Iterator[Event]:
    match event:
        case Moves():
            yield from (event.row(row) for row in range(len(event)))
        case Release():
            for row in range(len(event.refuse_ms)):
                one = slice(row, row + 1)
                yield Release(event.released.cut(one), event.refuse_ms[one], event.allocated[one])
        case Transition():
            yield from (
                Transition(event.used.cut(slice(row, row + 1)))
                for row in range(len(event.used.agent))
            )


def is_possible(host: Host, event: Release | Transition) -> bool:
    """Whether kinds are known, and all rows together release no more than is held."""
    state = host.allocator.state
    back = event.released if isinstance(event, Release) else event.used
    if max(back.kind, default=0) >= len(KINDS):
        return False
    client = state.clients.rows(back.framework, back.role)
    left: dict[tuple[int, int], np.ndarray] = {}
    for row, who in enumerate(client.tolist() if isinstance(event, Release) else []):
        where = who, int(back.agent[row])
        if where not in left:
            found = int(state.ledger.find(*np.array([[each] for each in where]))[0])
            nothing = np.zeros(len(KINDS), np.int64)
            known = who and where[1] <= AGENTS
            left[where] = state.ledger.books.held[:, found].copy() if found >= 0 else nothing
            left[where] += 0 if known else 10**9
        left[where][back.kind] -= back.amount[row]
        if (left[where] < 0).any():
            return False
    return True


class Draw:
    """The next event of a module, mostly about existing holdings."""

    def __init__(self, chance: Random, host: Host) -> None:
        self.chance = chance
        self.state = host.allocator.state

    def event(self) -> Event:
        chance = self.chance
        draw = chance.choices(
            [self.release, self.transition, self.hold, self.other, self.wild], [9, 6, 4, 0.5, 0.2]
        )
        return draw[0]()

    def _place(self, *, offered: bool) -> tuple[int, int, int, list[int]] | None:
        """A holding of a framework."""
        books, clients = self.state.ledger.books, self.state.clients
        rows = self.state.ledger.rows()
        table = books.offered if offered else books.held
        some = rows[table[:, rows].any(axis=0)].tolist()
        if not some:
            return None
        row = self.chance.choice(some)
        client = int(books.client[row])
        who = int(clients.framework[client]), int(clients.role[client])
        return *who, int(books.agent[row]), table[: len(KINDS), row].tolist()

    def _kinds(self) -> tuple[int, ...]:
        return self.chance.choice([(0, 1), (0, 1), (1, 0), (0, 1, 2), (0,), (2, 1), ()])

    def _rows(self, kinds: tuple[int, ...], *, offered: bool) -> list[tuple[int, ...]]:
        """One row, or a few, each with a task, a part, or all of a holding."""
        found = []
        for _ in range(self.chance.choice([1, 1, 1, 2, 3])):
            place = self._place(offered=offered)
            if place is None:
                continue
            *who, amounts = place
            times = self.chance.choice([1, 1, 2, 0])
            part = [min(have, each * times) for have, each in zip(amounts, (*TASK, 0), strict=True)]
            much = self.chance.choice([amounts, part, part])
            found.append((*who, *(much[kind] for kind in kinds)))
        return found

    def release(self) -> Event:
        kinds = self._kinds()
        rows = self._rows(kinds, offered=self.chance.random() < 0.4)
        refuse_ms = [self.chance.choice([-1, 0, 500, 5000]) for _ in rows]
        ended = [self.chance.random() < 0.5 for _ in rows]
        table = holdings(*rows, kinds=kinds)
        return Release(table, np.array(refuse_ms, np.int64), np.array(ended, np.bool_))

    def transition(self) -> Event:
        kinds = self._kinds()
        rows = [
            (framework * self.chance.choice([0, 1, 1]), *rest)
            for framework, *rest in self._rows(kinds, offered=True)
        ]
        return Transition(holdings(*rows, kinds=kinds))

    def hold(self) -> Event:
        kinds, chance = (0, 1), self.chance
        # Some belong to an unknown framework.
        framework = chance.choice([*range(1, FRAMEWORKS + 1), FRAMEWORKS + 1])
        where = chance.randint(1, ROLES), chance.randint(1, AGENTS)
        times = chance.choice([0, 1, 1, 2])
        return Hold(holdings((framework, *where, *(each * times for each in TASK)), kinds=kinds))

    def other(self) -> Event:
        """Events between two runs of moves, and frameworks that leave a role."""
        framework = self.chance.randint(1, FRAMEWORKS)
        if not self.state.frameworks.is_bound(framework):
            return AddFramework(framework, FrameworkInfo(f"id-{framework}", "job-9"), (1, 2))
        info = self.state.frameworks.info[framework]
        assert info is not None
        roles = self.chance.choice([(1,), (2,), (1, 2)])
        some: list[Event] = [
            SetWhitelist(None),
            UpdateFramework(framework, info, roles),
            RemoveFramework(framework),
        ]
        return self.chance.choice(some)

    def wild(self) -> Event:
        """Events that are mostly invalid."""
        chance = self.chance
        table = holdings(
            *((chance.randint(1, 5), chance.randint(1, 3), chance.randint(1, 5), 1000),)
            * chance.randint(1, 2),
            kinds=(chance.randint(0, 4),),
        )
        count = len(table.agent)
        none, ended = np.full(count, -1), np.ones(count, np.bool_)
        some: list[Event] = [Hold(table), Transition(table), Release(table, none, ended)]
        return chance.choice(some)


def noted(trail: Trail) -> list[str]:
    """A trail's rows of offers; zero amounts are left out."""
    found = []
    for each in trail.events:
        if isinstance(each.event, Moves | Release | Transition):
            for one in rows_of(each.event):
                if isinstance(one, Release | Transition):
                    table = one.released if isinstance(one, Release) else one.used
                    amounts = zip(table.kind.tolist(), table.amount[0].tolist(), strict=True)
                    more = (one.refuse_ms, one.allocated) if isinstance(one, Release) else ()
                    who = table.framework, table.role, table.agent
                    some = sorted(amount for amount in amounts if amount[1])
                    found.append(f"{each.at_ms} {type(one).__name__} {who} {some} {more}")
        else:
            found.append(f"{each.at_ms} {each.event}")
    return found


@given(
    seed=st.integers(0, 2**32), length=st.integers(1, 60), filters=st.sampled_from([3, 1_000_000])
)
def test_mixed_events_do_what_their_rows_do_one_by_one(seed, length, filters):
    chance = Random(seed)
    fast, slow = Host(filters), Host(filters)
    for _ in range(3):
        assert fast.cycle() == slow.cycle()
        events, wrong = [], ""
        for _ in range(length):
            events.append(Draw(chance, slow).event())
            wrong = one_by_one(slow, events[-1])
            if wrong:
                break
        told = fast.batch(*events)
        assert told == re.sub(r"^events\[0\]", f"events[{len(events) - 1}]", wrong)
        fast.allocator.check()
        assert same(kept(fast.allocator), kept(slow.allocator))
        assert noted(fast.trail) == noted(slow.trail)
        if wrong:
            return
