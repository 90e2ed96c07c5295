"""Sets up the module's brain with the state of a case; its gates judge the wish."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from allocator.core import Kind, format_amount
from allocator.v1 import session_pb2 as pb
from allocator.v1 import types_pb2 as types_pb
from allocator.wire.codec.proto_types import read_kind
from laboratory.resources import Resource
from tests.rules.cases import OFFERING, Case, Wish, objects_of, quantities_of, words_of
from tests.rules.small_master import UNBOUND, SmallMaster
from tests.simulation.brain import Brain

_CAPABILITIES = ("MULTI_ROLE", "HIERARCHICAL_ROLE", "RESERVATION_REFINEMENT")
_CAN = {
    "REVOCABLE_RESOURCES": "revocable",
    "GPU_RESOURCES": "gpus",
    "SHARED_RESOURCES": "shared",
    "RESERVATION_REFINEMENT": "refinement",
    "REGION_AWARE": "region",
}
_NO_KIND = 999


def is_of_a_master(case: Case) -> bool:
    """Whether Mesos allows the state: it refuses quotas below top-level roles."""
    quotas = (line for line in case.state if line[0] in {"limit", "guarantee"})
    return not any("/" in line[1] for line in quotas)


class SmallBrain:
    """A brain in the state of a case; its sidecar sends only the case's wish."""

    def __init__(self, case: Case, library: Path) -> None:
        self._brain = Brain(library)
        self._case = case
        self._kinds: dict[Kind, int] = {}
        self._roles: dict[str, int] = {}
        self._frameworks: dict[str, int] = {}
        self._agents: dict[str, int] = {}
        self._mark = 0
        self._refused: list[list[str]] = []
        # For each object on each agent, the range numbers in use.
        self._taken: dict[tuple[str, str], int] = defaultdict(int)
        self._build()

    def verdict(self) -> list[str]:
        """The verdict of the gates, formatted as in a case."""
        master = SmallMaster(self._case)
        decision, known = master.decision, master.ledger.kinds
        batch, group = pb.DecisionBatch(sequence=1, cycle=1, first_decision=1), types_pb.Holdings()
        framework, role, agent = self._case.wish[:3]
        group.framework.append(self._frameworks.get(framework, UNBOUND))
        group.role.append(self._roles.get(role, UNBOUND))
        group.agent.append(self._agents.get(agent, UNBOUND))
        wanted = {
            known.kinds[kind]: amount
            for kind, amount in zip(decision.kinds, decision.amounts, strict=True)
        }
        for kind, amount in wanted.items():
            group.kind.append(self._kinds.get(kind, _NO_KIND))
            group.amount.append(amount)
        batch.grants.append(group)
        said = self._tell(f"answer-bytes {batch.SerializeToString().hex()} known={self._mark}")
        (line,) = (each for each in said if each.startswith("outcomes: "))
        outcomes = pb.Outcomes.FromString(bytes.fromhex(line.removeprefix("outcomes: ")))
        (reason,) = outcomes.reason
        name = pb.OutcomeReason.Name(reason).removeprefix("OUTCOME_REASON_")
        if name not in OFFERING:
            return [name]
        by_handle = {handle: kind for kind, handle in self._kinds.items()}
        given: Wish = wanted
        if name == "PARTIAL":
            amounts = zip(outcomes.kind, outcomes.amount, strict=True)
            given = {by_handle[kind]: amount for kind, amount in amounts if amount}
        return [name, *words_of(given)]

    # The state.

    def _build(self) -> None:
        lines = defaultdict(list)
        for word, *rest in self._case.state:
            lines[word].append(rest)
        minimum = self._any_of(lines["minimum"])
        region = f" region={lines['region'][0][0]}" if lines["region"] else ""
        gpus = " filter-gpus=0" if "gpus-for-all" in lines else ""
        some = f" minimum={minimum}" if minimum else ""
        # A filter lasts for an interval at least, so the interval is short.
        self._tell(f"initialize interval=1 fallback=0{some}{region}{gpus}")
        # Both settings prevent offers for now. With guarantees the brain would recover offers.
        expected = lines["recovering"][0][0] if lines["recovering"] else "0"
        expected = "1000" if "paused" in lines else expected
        self._tell(f"recover agents={expected} guarantee.nobody=cpus:0")
        self._tell("welcomed kinds=64", "connected", "settle")
        self._quotas(lines)
        for rest in lines["framework"]:
            self._framework(rest, lines)
        for rest in lines["agent"]:
            self._agent(rest, lines)
        for framework, role, agent in lines["excluded"]:
            self._tell(f"exclude {framework} {role} {agent}")
        for rest in lines["whitelist"]:
            self._tell(f"whitelist {' '.join(rest)}")
        self._in_order()
        self._rebind(lines)

    def _tell(self, *lines: str) -> list[str]:
        said = self._brain.run("\n".join(lines))
        for line in said:
            verb, _, rest = line.partition(" ")
            mark, _, data = rest.partition(": ")
            if verb == "snapshot":
                chunk = pb.SnapshotChunk.FromString(bytes.fromhex(data))
                self._learn(chunk.kinds, chunk.roles)
                self._mark = int(mark)
            elif verb == "send":
                event = pb.Event.FromString(bytes.fromhex(data))
                self._learn(event.define.kinds, event.define.roles)
                if event.HasField("add_agent"):
                    self._agents[event.add_agent.agent_id] = event.add_agent.agent
                if event.HasField("add_framework"):
                    added = event.add_framework
                    self._frameworks[added.framework_id] = added.framework
                self._mark = int(mark)
        return said

    def _learn(self, kinds: Iterable[types_pb.Kind], roles: Iterable[types_pb.Role]) -> None:
        for kind in kinds:
            self._kinds[read_kind(kind)] = kind.kind
        for role in roles:
            self._roles[role.path] = role.role

    @staticmethod
    def _quantities(words: list[str]) -> str:
        amounts = quantities_of(words)
        return ";".join(f"{name}:{format_amount(amount)}" for name, amount in amounts.items())

    def _any_of(self, rows: list[list[str]]) -> str:
        """Write alternatives for the minimum; an empty one is always reached."""
        return "|".join(map(self._quantities, rows)) if all(rows) else ""

    def _quotas(self, lines: dict[str, list[list[str]]]) -> None:
        quotas: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for word in ("guarantee", "limit"):
            for role, *words in lines[word]:
                quotas[role][word].extend(words)
        for role, quota in quotas.items():
            parts = " ".join(f"{word}={self._quantities(each)}" for word, each in quota.items())
            self._tell(f"quota {role} {parts}")

    def _framework(self, rest: list[str], lines: dict[str, list[list[str]]]) -> None:
        name, *roles = rest
        words = [word for each, *more in lines["framework-is"] if each == name for word in more]
        can = [_CAN[word.removeprefix("can=")] for word in words if word.startswith("can=")]
        out = [word.partition("=")[2] for word in words if word.startswith("suppressed=")]
        minimum: dict[str, list[list[str]]] = defaultdict(list)
        for each, role, *amounts in lines["framework-minimum"]:
            if each == name:
                minimum[role] += [] if amounts == ["none"] else [amounts]
        self._tell(
            f"add-framework {name} roles={','.join(roles)} suppressed={','.join(out)}"
            f" capabilities={','.join(can)} active={int('inactive' not in words)}"
            f" old={int('old=MULTI_ROLE' in words)}"
            + "".join(f" minimum.{role}={self._any_of(each)}" for role, each in minimum.items())
        )

    def _agent(self, rest: list[str], lines: dict[str, list[list[str]]]) -> None:
        name, *objects = rest
        words = [word for each, *more in lines["agent-is"] if each == name for word in more]
        values = dict(word.partition("=")[::2] for word in words)
        old = {word.removeprefix("old=") for word in words if word.startswith("old=")}
        capabilities = ",".join(each for each in _CAPABILITIES if each not in old)
        total = self._pieces(f"total of {name}", objects)
        used: dict[str, list[str]] = defaultdict(list)
        for word in ("used", "offered"):
            for framework, role, agent, *held in lines[word]:
                if agent == name:
                    used[f"{framework}@{role}"].append(self._pieces(name, held))
        # A framework must hold something to refuse it.
        for framework, role, agent, _, *objects in lines["refused"]:
            if agent == name:
                pieces = self._pieces(f"refused on {name}", objects)
                used[f"{framework}@{role}"].append(pieces)
        self._taken.clear()
        self._tell(
            f"add-agent {name} total={total} capabilities={capabilities or 'UNSPECIFIED'}"
            f" host={values.get('host', name)}"
            + (f" region={values['region']}" if "region" in values else "")
            + "".join(f" used.{key}={';'.join(each)}" for key, each in used.items())
        )
        if "inactive" in words:
            self._tell(f"deactivate-agent {name}")
        if "maintained" in words:
            self._tell(f"unavailable {name} 0")

    def _in_order(self) -> None:
        """Apply refusals, and let time pass."""
        for word, *rest in self._case.state:
            if word == "later":
                self._tell(f"pass {rest[0]}")
            elif word == "refused":
                framework, role, agent, life_ms, *objects = rest
                pieces = self._pieces(f"refused on {agent}", objects)
                self._tell(
                    f"release {agent} {framework} @{role}={pieces} refuse={int(life_ms) + 1}"
                )

    def _rebind(self, lines: dict[str, list[list[str]]]) -> None:
        known = self._mark
        for word, adding in (("agent", self._agent), ("framework", self._framework)):
            again = {name for name, *words in lines[f"{word}-is"] if "rebound" in words}
            for rest in lines[word]:
                if rest[0] in again:
                    self._tell(f"remove-{word} {rest[0]}")
                    adding(rest, lines)
        self._mark = known

    def _pieces(self, place: str, words: list[str]) -> str:
        return ";".join(
            self._piece(place, resource, amount) for resource, amount in objects_of(words).items()
        )

    def _piece(self, place: str, resource: Resource, amount: int) -> str:
        stack = "+".join(each.role for each in resource.reservations)
        flags = [flag for flag in ("revocable", "shared") if getattr(resource, flag)]
        # Properties that do not distinguish kinds still distinguish objects.
        for each in resource.reservations:
            flags += [f"{name}={value}" for name, value in each.labels]
            flags += ["static"] if each.static else []
        flags += [f"provider={resource.provider}"] if resource.provider else []
        disk = ""
        if resource.persistence:
            disk = f"volume:{resource.persistence}"
            flags += [f"on={resource.source}:{resource.source_id}"] if resource.source else []
        elif resource.source:
            disk = f"{resource.source}:{resource.source_id}".rstrip(":")
        name = resource.name
        name += f"({stack})" if stack else ""
        name += f"[{disk}]" if disk else ""
        name += "{" + ",".join(flags) + "}" if flags else ""
        if resource.scalar:
            return f"{name}:{format_amount(amount)}"
        first = self._taken[place, name] + 1
        self._taken[place, name] += amount // 1000
        return f"{name}:[{first}-{self._taken[place, name]}]"
