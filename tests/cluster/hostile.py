"""A server that speaks the protocol and makes nonsensical decisions.

It learns all handles, as a sidecar does, so that most of its decisions pass the first checks: they
name existing agents, frameworks, roles and kinds. It also learns from outcomes, so that some of its
decisions become offers, which tests the code behind the gates, too. Invalid answers (columns of
unequal length, repeated answers, random bytes) end sessions, so they are rarer. It can also be
restricted to one manner.
"""

import multiprocessing
import random
import struct
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Self

import grpc

from allocator.v1 import session_pb2 as pb
from allocator.v1 import types_pb2 as types
from allocator.wire import PROTOCOL_VERSION

SERVICE, METHOD = "allocator.v1.SessionService", "Session"
ROWS_MAX = 60_000
"""Rows of a huge answer of about three MiB; it is four times as rare."""

SILENT_S = 2.0
"""Longer than any deadline for answers in the tests."""

ROWS_MANY = 500
"""Rows of an oversized answer."""

OFFERED_PART = 0.3
"""Required fraction of rows that become offers; below it, decisions are modest."""

OFFERED = (pb.OUTCOME_REASON_OFFERED, pb.OUTCOME_REASON_PARTIAL)
MODEST = {"cpus": 100, "mem": 48_000}
"""Amounts that always make a valid offer, in thousandths."""

INT64_MAX = 2**63 - 1
UINT32_MAX = 2**32 - 1
NAN = struct.pack("<d", float("nan"))


Place = tuple[int, int, int]
"""A framework, a role, an agent."""


class World:
    """The state of a session: handles, capacities of agents by kind, outcomes.

    modest: a small amount of each kind that every framework may have.
    asked: decisions by number whose outcome is not known yet.
    welcome: where the latest decision became an offer.
    offered, last_offered: decisions that became offers, in total and in the latest batch of
        outcomes.
    """

    def __init__(self) -> None:
        self.modest: dict[int, int] = {}
        self.asked: dict[int, Place] = {}
        self.welcome: dict[Place, None] = {}
        self.offered = self.last_offered = 0
        self.kinds: set[int] = set()
        self.roles: set[int] = set()
        self.clients: dict[int, list[int]] = {}
        self.agents: dict[int, dict[int, int]] = {}

    def hear(self, request: Any) -> None:
        """Record the contents of a message."""
        chunk = request.snapshot
        self._define(chunk)
        for agent in chunk.agents:
            self._agent(agent)
        for framework in chunk.frameworks:
            self.clients[framework.framework] = list(framework.roles)
        for event in request.events.events:
            match event.WhichOneof("event"):
                case "define":
                    self._define(event.define)
                case "add_agent":
                    self._agent(event.add_agent)
                case "update_agent" | "update_allocation":
                    self._define_amounts(event)
                case "remove_agent":
                    self.agents.pop(event.remove_agent.agent, None)
                case "add_framework":
                    added = event.add_framework
                    self.clients[added.framework] = list(added.roles)
                case "update_framework":
                    updated = event.update_framework
                    self.clients[updated.framework] = list(updated.roles)
                case "remove_framework":
                    self.clients.pop(event.remove_framework.framework, None)
                case "outcomes":
                    self._settle(event.outcomes)

    def _settle(self, outcomes: Any) -> None:
        self.last_offered = 0
        for number, reason in enumerate(outcomes.reason, outcomes.first_decision):
            place = self.asked.pop(number)
            self.welcome.pop(place, None)
            if reason in OFFERED:
                self.welcome[place] = None
                self.last_offered += 1
        self.offered += self.last_offered

    def _define(self, message: Any) -> None:
        self.kinds.update(kind.kind for kind in message.kinds)
        for kind in message.kinds:
            if kind.name in MODEST and not (kind.reserved_role or kind.revocable or kind.rest):
                self.modest[kind.kind] = MODEST[kind.name]
        self.roles.update(role.role for role in message.roles)

    def _agent(self, agent: Any) -> None:
        amounts = dict(zip(agent.capacity.kind, agent.capacity.amount, strict=True))
        self.agents[agent.agent] = amounts

    def _define_amounts(self, event: Any) -> None:
        if event.HasField("update_agent") and event.update_agent.HasField("capacity"):
            agent = event.update_agent
            amounts = dict(zip(agent.capacity.kind, agent.capacity.amount, strict=True))
            self.agents[agent.agent] = amounts


class HostileCounts(NamedTuple):
    """Counts of a hostile sidecar: streams, rows, resulting offers, answers by manner."""

    streams: int
    rows: int
    offered: int
    answers: dict[str, int]


class HostileProcess:
    """A hostile sidecar in its own process, so that it does not slow the frameworks down."""

    def __init__(self, target: str, seed: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._asked, theirs = context.Pipe()
        self._child = context.Process(target=_serve, args=(target, seed, theirs), daemon=True)

    def __enter__(self) -> Self:
        self._child.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._child.kill()
        self._child.join()

    def figures(self) -> HostileCounts:
        """Its counts so far."""
        self._asked.send(None)
        return HostileCounts(*self._asked.recv())


def _serve(target: str, seed: int, asked: Any) -> None:
    with HostileSidecar(target, seed) as sidecar:
        while True:
            asked.recv()
            asked.send(tuple(sidecar.figures))


class HostileSidecar:
    """The server.

    target: where it listens, such as ``unix:PATH``.
    ended: fraction of answers for which a module must end the session.
    manner: the only manner of its answers; empty: all.
    said: answers by manner.
    rows, offered: decisions made, and those that became offers.
    """

    def __init__(self, target: str, seed: int, ended: float = 0.01, manner: str = "") -> None:
        self._random = random.Random(seed)
        self._ended = (manner in ENDING) if manner else ended
        self._endings = [manner] if manner in ENDING else list(ENDING)
        self._late = 0.0 if manner else 0.05
        self._only = manner if manner in BELIEVED else ""
        self.said: Counter[str] = Counter()
        self.rows = self.offered = self.streams = 0
        self._huge_at = 4 * ROWS_MAX
        self._lock = threading.Lock()
        handler: Any = grpc.stream_stream_rpc_method_handler(self._session)
        self._server = grpc.server(
            ThreadPoolExecutor(16),
            options=[("grpc.max_send_message_length", 64 * 2**20)],
        )
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(SERVICE, {METHOD: handler}),)
        )
        self._server.add_insecure_port(target)

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._server.stop(0).wait()

    @property
    def figures(self) -> "HostileCounts":
        """Its counts so far."""
        return HostileCounts(self.streams, self.rows, self.offered, dict(self.said))

    def _session(self, requests: Iterator[bytes], _context: object) -> Iterator[bytes]:
        self.streams += 1
        world, cycles, decision = World(), 0, 1
        last: list[bytes] = []
        for data in requests:
            request = pb.SessionRequest.FromString(data)
            offered = world.offered
            world.hear(request)
            self.offered += world.offered - offered
            answer = pb.SessionResponse()
            match request.WhichOneof("message"):
                case "hello":
                    answer.welcome.protocol_version = PROTOCOL_VERSION
                    answer.welcome.sidecar_id = "hostile"
                    yield answer.SerializeToString()
                case "events":
                    answer.decisions.sequence = request.events.sequence
                    answer.decisions.first_decision = decision
                    if request.events.cycle:
                        cycles += 1
                        answer.decisions.cycle = cycles
                        self._believed(answer.decisions, world)
                    for group in answer.decisions.grants:
                        places = zip(group.framework, group.role, group.agent, strict=True)
                        world.asked.update(enumerate(places, decision))
                        decision += len(group.framework)
                        self.rows += len(group.framework)
                    yield from self._say(answer, last)

    def _say(self, answer: Any, last: list[bytes]) -> Iterator[bytes]:
        honest = answer.SerializeToString()
        if self._random.random() < self._ended:
            manner = self._random.choice(self._endings)
            self.said[manner] += 1
            yield from getattr(self, "_" + manner)(answer, honest, last)
        else:
            if self._random.random() < self._late:
                time.sleep(self._random.choice((0.3, 0.8, 1.5)))
                self.said["late"] += 1
            yield honest
        last.append(honest)
        del last[:-20]

    # Answers that a module must process row by row.

    def _believed(self, answer: Any, world: World) -> None:
        """Add a group of rows of some manner, in any order."""
        if not world.agents or not world.clients:
            return
        too_few = self.offered <= OFFERED_PART * self.rows
        manner = self._only or ("modest" if too_few else self._random.choice(BELIEVED))
        self.said[manner] += 1
        kinds = sorted(world.kinds)
        grants = answer.grants.add()
        grants.kind.extend(kinds)
        rows = [self._row(manner, kinds, world) for _ in range(self._count(manner, world))]
        if manner == "twice":
            rows += rows
        self._random.shuffle(rows)
        for framework, role, agent, amounts in rows:
            grants.framework.append(framework)
            grants.role.append(role)
            grants.agent.append(agent)
            grants.amount.extend(amounts)

    def _count(self, manner: str, world: World) -> int:
        """The number of rows of an answer of some manner."""
        match manner:
            case "oversized" if self.rows >= self._huge_at:
                self._huge_at += 4 * ROWS_MAX
                return ROWS_MAX
            case "oversized":
                return min(ROWS_MANY, self.rows + 41)
            case "modest":  # slightly more rows than became offers the last time
                return min(40, 2 * world.last_offered + 2)
            case _:
                return self._random.randint(1, 40)

    def _row(self, manner: str, kinds: list[int], world: World) -> tuple[int, int, int, list[int]]:
        framework = self._random.choice(sorted(world.clients))
        roles = world.clients[framework] or [0]
        role, agent = self._random.choice(roles), self._random.choice(sorted(world.agents))
        capacity = world.agents[agent]
        amounts = [capacity.get(kind, 0) for kind in kinds]
        if manner == "modest":
            amounts = [world.modest.get(kind, 0) for kind in kinds]
            if world.welcome and self._random.random() < 0.9:
                framework, role, agent = self._random.choice(list(world.welcome))
        elif manner == "small":
            amounts = [min(each, self._random.choice((0, 1, 10, 500, 64_000))) for each in amounts]
        elif manner == "reserved":
            amounts = [self._random.choice((0, 1, 1000, 100_000, 10**9)) for _ in kinds]
        elif manner == "unknown_handle":
            framework = self._random.choice((framework, 999, UINT32_MAX))
            role = self._random.choice((role, 999, UINT32_MAX))
            agent = self._random.choice((agent, 999, UINT32_MAX))
        elif manner == "crossed":
            role = self._random.choice(sorted(world.roles))
        elif manner == "vast":
            amounts = [self._random.choice((2**53, 2**50, each)) for each in amounts]
        elif manner == "nothing":
            amounts = [0 for _ in kinds]
        return framework, role, agent, amounts

    # Answers that end a session.

    def _negative(self, answer, honest, last):
        amounts = _rows(answer).amount
        if amounts:
            number = self._random.choice((-1, -(2**63), INT64_MAX))
            amounts[self._random.randrange(len(amounts))] = number
        yield answer.SerializeToString()

    def _unbound_handle(self, answer, honest, last):
        """A handle that is not bound."""
        grants = _rows(answer)
        if grants.agent:
            column = self._random.choice((grants.agent, grants.role, grants.framework))
            column[self._random.randrange(len(column))] = 0
        yield answer.SerializeToString()

    def _uneven(self, answer, honest, last):
        grants = _rows(answer)
        if grants.agent:
            self._random.choice((grants.agent, grants.role, grants.amount, grants.kind)).pop()
        yield answer.SerializeToString()

    def _noise(self, answer, honest, last):
        yield self._random.randbytes(self._random.choice((1, 40, 4000)))

    def _not_a_number(self, answer, honest, last):
        """A double amount in place of an integer (field 5 of `grants`)."""
        grants = b"\x29" + NAN
        decisions = answer.decisions.SerializeToString() + b"\x22" + bytes([len(grants)]) + grants
        yield pb.SessionResponse(decisions=pb.DecisionBatch()).SerializeToString()[:1] + _length(
            decisions
        )

    def _flipped(self, answer, honest, last):
        data = bytearray(honest)
        for _ in range(3):
            data[self._random.randrange(len(data))] ^= 1 << self._random.randrange(8)
        yield bytes(data)

    def _cut_short(self, answer, honest, last):
        yield honest[: self._random.randrange(len(honest))]

    def _repeated(self, answer, honest, last):
        yield honest
        yield honest

    def _endless(self, answer, honest, last):
        """Answers to batches that were never sent, endlessly."""
        while True:
            yield answer.SerializeToString()
            answer.decisions.sequence += 1

    def _parts(self, answer, honest, last):
        """Endless parts of an answer, with one decision each."""
        if not answer.decisions.cycle:
            yield honest
            return
        del answer.decisions.grants[:]
        one = {"framework": [1], "role": [1], "agent": [1], "kind": [0], "amount": [1]}
        answer.decisions.grants.add(**one)
        answer.decisions.more = True
        while True:
            yield answer.SerializeToString()
            answer.decisions.first_decision += 1

    def _reordered(self, answer, honest, last):
        yield self._random.choice(last) if last else honest

    def _renumbered(self, answer, honest, last):
        field = self._random.choice(("sequence", "cycle", "first_decision"))
        number = self._random.choice((0, getattr(answer.decisions, field) + 1, 2**64 - 1))
        setattr(answer.decisions, field, number)
        yield answer.SerializeToString()

    def _more_of_nothing(self, answer, honest, last):
        """A part without a decision that announces a further part."""
        del answer.decisions.grants[:]
        answer.decisions.more = True
        yield answer.SerializeToString()

    def _many_groups(self, answer, honest, last):
        """Many groups without a decision."""
        answer.decisions.grants.extend([types.Holdings()] * 100_000)
        yield answer.SerializeToString()

    def _immense(self, answer, honest, last):
        error = pb.Error(message="x" * (12 * 2**20))
        yield pb.SessionResponse(error=error).SerializeToString()

    def _rude(self, answer, honest, last):
        error = pb.Error(message="x" * 1000)
        error.code = self._random.randrange(30)  # type: ignore[assignment]
        yield pb.SessionResponse(error=error).SerializeToString()

    def _silent(self, answer, honest, last):
        time.sleep(SILENT_S)
        yield honest


def _rows(answer: Any) -> Any:
    """The only group of an answer; adds an empty one if it has none."""
    groups = answer.decisions.grants
    return groups[0] if groups else types.Holdings()


def _length(data: bytes) -> bytes:
    """The data behind its length, as in protobuf."""
    size, head = len(data), b""
    while size >= 128:
        head += bytes([size & 127 | 128])
        size >>= 7
    return head + bytes([size]) + data


BELIEVED = (
    "modest",
    "greedy",
    "small",
    "small",
    "reserved",
    "unknown_handle",
    "crossed",
    "vast",
    "nothing",
    "twice",
    "oversized",
)
ENDING = (
    "negative",
    "unbound_handle",
    "uneven",
    "noise",
    "not_a_number",
    "flipped",
    "cut_short",
    "repeated",
    "reordered",
    "renumbered",
    "endless",
    "parts",
    "more_of_nothing",
    "many_groups",
    "immense",
    "rude",
    "silent",
)
