"""Sets up an emulated master's books with the state of a case; its gates judge the wish."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from laboratory.frameworks.base import Identity
from laboratory.master.gates import Decision, judge
from laboratory.master.ledger import AgentRow, FrameworkRow, Ledger, OfferFilter, Quota
from laboratory.resources import AgentSpec, lineage
from tests.rules.cases import ALL, OFFERING, Case, Wish, amounts_of, objects_of, quantities_of
from tests.rules.cases import words_of as words

SEQUENCE = 5
"""The sequence number of the wish's batch; handles in `rebound` were bound later."""

NEVER_MS = 2**53

UNKNOWN = "?"
UNBOUND = 999
"""A handle that was never bound."""


class SmallMaster:
    """A master in the state of a case."""

    def __init__(self, case: Case) -> None:
        self.ledger = Ledger((), ())
        self.now_ms = 0
        self.limits: dict[str, dict[str, int]] = {}
        self.outstanding_max = 1.0
        self.offered: list[tuple[int, int, int, Wish]] = []
        self._paths: dict[int, str] = {}
        self._roles: dict[str, int] = {}
        self._frameworks: dict[str, int] = {}
        self._agents: dict[str, int] = {}
        self.ledger.path = self._paths
        for line in case.state:
            self._lines()[line[0]](line[1:])
        # The sidecar knows all kinds of the state and of the wish.
        for row in range(len(self.ledger.table)):
            self.ledger.kinds.handle(self.ledger.table[row])
        self.decision = self._decision(case.wish)

    def _lines(self) -> dict[str, Callable[[list[str]], None]]:
        return {
            "minimum": self._minimum,
            "region": lambda rest: setattr(self.ledger, "region", rest[0]),
            "gpus-for-all": lambda _: setattr(self.ledger, "filter_gpus", False),
            "whitelist": lambda rest: setattr(self.ledger, "whitelist", frozenset(rest)),
            "agent": self._agent,
            "agent-is": self._agent_is,
            "framework": self._framework,
            "framework-is": self._framework_is,
            "framework-minimum": self._framework_minimum,
            "guarantee": lambda rest: self._quota(rest[0], guarantees=rest[1:]),
            "limit": lambda rest: self._quota(rest[0], limits=rest[1:]),
            "operator-limit": self._operator_limit,
            "used": self._used,
            "offered": self._offered,
            "excluded": self._excluded,
            "refused": self._refused,
            "later": lambda rest: setattr(self, "now_ms", self.now_ms + int(rest[0])),
            "paused": lambda _: setattr(self.ledger, "recovery", (1, NEVER_MS)),
            "recovering": lambda rest: setattr(self.ledger, "recovery", (int(rest[0]), 10**9)),
            "outstanding-max": lambda rest: setattr(self, "outstanding_max", float(rest[0])),
        }

    # Lines.

    def _minimum(self, rest: list[str]) -> None:
        self.ledger.minimum = (*self.ledger.minimum, quantities_of(rest))

    def _agent(self, rest: list[str]) -> None:
        name, *objects = rest
        handle = self._agents[name] = len(self._agents) + 1
        capacity = list(self.ledger.row(objects_of(objects)))
        self.ledger.add_agent(handle, AgentRow(AgentSpec(name, {}).info(name), 1, capacity, []))

    def _agent_is(self, rest: list[str]) -> None:
        row = self.ledger.agents[self._agents[rest[0]]]
        for word in rest[1:]:
            what, _, value = word.partition("=")
            match what:
                case "inactive":
                    row.active = False
                case "host":
                    row.info = replace(row.info, hostname=value)
                case "region":
                    row.info = replace(row.info, region=value)
                case "old":
                    knows = row.info.capabilities - {value}
                    row.info = replace(row.info, capabilities=knows)
                case "maintained":
                    row.unavailable_ms = (0, 0)
                case "rebound":
                    row.bound_sequence = SEQUENCE + 1
                case _:
                    raise ValueError(f"agent-is {word}")

    def _framework(self, rest: list[str]) -> None:
        name, *roles = rest
        handle = self._handle(name)
        row = FrameworkRow(name, 1, {self._role(role) for role in roles})
        row.capabilities = frozenset({"MULTI_ROLE"})
        self.ledger.add_framework(handle, row)

    def _framework_is(self, rest: list[str]) -> None:
        row = self.ledger.frameworks[self._handle(rest[0])]
        for word in rest[1:]:
            what, _, value = word.partition("=")
            match what:
                case "inactive":
                    row.active = False
                case "suppressed":
                    row.suppressed.add(self._role(value))
                case "can":
                    row.capabilities |= {value}
                case "old":
                    row.capabilities -= {value}
                case "rebound":
                    row.bound_sequence = SEQUENCE + 1
                case _:
                    raise ValueError(f"framework-is {word}")

    def _framework_minimum(self, rest: list[str]) -> None:
        row, role = self.ledger.frameworks[self._handle(rest[0])], self._role(rest[1])
        before = row.minimum.get(role, ())
        more = () if rest[2:] == ["none"] else (quantities_of(rest[2:]),)
        row.minimum = {**row.minimum, role: (*before, *more)}

    def _quota(self, role: str, guarantees: Sequence[str] = (), limits: Sequence[str] = ()) -> None:
        before = self.ledger.quotas.get(role, Quota())
        self.ledger.quotas[role] = Quota(
            {**before.guarantees, **quantities_of(guarantees)},
            {**before.limits, **quantities_of(limits)},
        )

    def _operator_limit(self, rest: list[str]) -> None:
        self.limits[rest[0]] = quantities_of(rest[1:])

    def _used(self, rest: list[str]) -> None:
        framework, place, row = self._held(rest)
        self.ledger.recover(framework, place, row)

    def _offered(self, rest: list[str]) -> None:
        framework, place, row = self._held(rest)
        self.ledger.hold(framework, place, row)
        self.offered.append((framework, *place, amounts_of(rest[3:])))

    def _held(self, rest: list[str]) -> tuple[int, tuple[int, int], tuple[int, ...]]:
        framework, role, agent, *objects = rest
        place = self._role(role), self._agents[agent]
        return self._handle(framework), place, self.ledger.row(objects_of(objects))

    def _excluded(self, rest: list[str]) -> None:
        framework, role, agent = rest
        excluded = self.ledger.excluded[self._handle(framework)]
        excluded.add((self._role(role), self._agents[agent]))

    def _refused(self, rest: list[str]) -> None:
        framework, role, agent, life_ms, *objects = rest
        refusal = OfferFilter(self.ledger.row(objects_of(objects)), self.now_ms + int(life_ms))
        place = self._role(role), self._agents[agent]
        self.ledger.add_filter(self._handle(framework), place, refusal)

    # Names.

    def _handle(self, framework: str) -> int:
        return self._frameworks.setdefault(framework, len(self._frameworks) + 1)

    def _role(self, path: str) -> int:
        for each in lineage(path):
            if each not in self._roles:
                self._roles[each] = len(self._roles) + 1
                self._paths[self._roles[each]] = each
        return self._roles[path]

    def _decision(self, wish: list[str]) -> Decision:
        framework, role, agent, *amounts = wish
        handle = self._agents.get(agent, UNBOUND)
        if amounts == [ALL]:
            free = self.ledger.available(handle) if handle in self.ledger.agents else ()
            by_kind = dict(enumerate(self.ledger.kinds.by_kind(free)))
        else:
            by_kind = {
                self.ledger.kinds.handle(resource): amount
                for resource, amount in objects_of(amounts).items()
            }
        wanted = {kind: amount for kind, amount in by_kind.items() if amount or amounts != [ALL]}
        return Decision(
            framework=self._frameworks.get(framework, UNBOUND),
            role=self._roles.get(role, UNBOUND),
            agent=handle,
            kinds=tuple(wanted),
            amounts=tuple(wanted.values()),
        )

    # Answers.

    @property
    def identities(self) -> dict[int, Identity]:
        """Names of the frameworks, by handle."""
        return {
            handle: Identity(
                row.framework_id, tuple(self._paths[role] for role in sorted(row.roles))
            )
            for handle, row in self.ledger.frameworks.items()
        }

    def verdict(self) -> list[str]:
        """The verdict of the gates, formatted as in a case."""
        verdict = judge(self.ledger, self.decision, SEQUENCE, self.now_ms)
        name = verdict.reason.name
        return [name, *words(self.given(verdict.amount))] if name in OFFERING else [name]

    def given(self, amount: tuple[int, ...]) -> Wish:
        """Amounts of objects, by kind."""
        kinds = self.ledger.kinds
        given: Counter[int] = Counter(dict(enumerate(kinds.by_kind(amount))))
        return {kinds.kinds[kind]: value for kind, value in given.items() if value}
