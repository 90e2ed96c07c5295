"""The crew of hostile tenants at a real master, by its HTTP interface, and an honest framework.

Requests that the master rejects are sent, too: they must not harm other frameworks either.
"""

import contextlib
import http.client
import itertools
import json
import math
import shutil
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from laboratory.links.sidecar_process import figures_of
from tests.cluster.amounts import plain, reserved, scalar
from tests.cluster.framework import Framework, Offer
from tests.cluster.framework_behaviours import refuse, role_of
from tests.cluster.mesos import Mesos
from tests.cluster.processes import until
from tests.cluster.scenarios_operator import set_quota
from tests.cluster.world import World
from tests.hostile.words import (
    AgentWords,
    Amounts,
    Disk,
    Info,
    Join,
    Leave,
    Manner,
    Request,
    Revive,
    Said,
    Suppress,
    Update,
)

FRAMEWORKS_MAX, AGENTS_MAX, CALLS_MAX = 30, 3, 200
"""Limits in total and per interval: a framework takes two connections, an agent a process.
"""

RESERVED_AT_ONCE = VOLUMES_AT_ONCE = 50
AGENT = "hostile-"
INTERVALS = 8
SERVED_S = 120.0
RUNS = ("allocator/mesos/allocation_runs", "allocator/sidecar/cycles")
"""Intervals, counted in cycles of the built-in allocator or of the module."""


@dataclass
class TenantFigures:
    """The effects of a manner on a master.

    wait: maximum number of intervals without an offer to the honest framework.
    master_mib, sidecar_mib: growth of peak memory.
    ends: sessions that ended since the tenants came, by reason.
    refused: requests that the master refused.
    """

    manner: str
    built_in: bool
    wait: int = 0
    master_mib: float = 0.0
    sidecar_mib: float = 0.0
    master_s: float = 0.0
    ends: dict[str, int] = field(default_factory=dict)
    refused: Counter[str] = field(default_factory=Counter)


class Tenants:
    """Tenants of a manner, in a cluster."""

    def __init__(self, world: World, manner: Manner) -> None:
        self.refused: Counter[str] = Counter()
        self._world, self._manner = world, manner
        self._members: list[Framework | None] = []
        self._left, self._volumes_left = manner.reserves, manner.volumes
        self._answers = itertools.count()

    def arrive(self) -> None:
        """Add them."""
        for role, amounts in self._manner.guarantees.items():
            set_quota(self._world, role, amounts)
        for number, words in enumerate(itertools.islice(self._manner.agents(), AGENTS_MAX)):
            name = f"{AGENT}{number}"
            # By a file, as an agent's resources may exceed the length of an argument.
            resources = self._world.directory / f"{name}.json"
            resources.write_text(json.dumps(_resources_of(words)), encoding="ascii")
            self._world.add_agent(name, resources=f"file://{resources}", **_flags(words))
        for info in itertools.islice(self._manner.frameworks(), FRAMEWORKS_MAX):
            self._join(info)

    def turn(self, interval: int) -> None:
        """Play their requests of this interval."""
        said: Said = self._manner.turn(interval)
        for number, call in itertools.islice(said, CALLS_MAX):
            if isinstance(call, Join):
                if sum(each is not None for each in self._members) < FRAMEWORKS_MAX:
                    self._join(call.info)
                continue
            member = self._members[number] if number < len(self._members) else None
            if member is None:
                continue
            with contextlib.suppress(OSError, http.client.HTTPException):
                self._say(member, number, call)

    def visit(self, honest: Framework, intervals: int = INTERVALS) -> int:
        """Play all intervals; returns the maximum number that an honest framework waited.

        Raises AssertionError if it is not served at the end, or the master has exited.
        """
        self.arrive()
        wait, served, last_run, last = 0, honest.counts["offers"], _runs(self._world), -1
        for interval in range(intervals):
            self.turn(interval)
            time.sleep(1.0)
            now, run = honest.counts["offers"], _runs(self._world)
            if now == served:
                # Requests trigger cycles of their own, and a busy master runs fewer periodic ones.
                wait = max(wait, min(run - last_run, interval - last))
            else:
                served, last_run, last = now, run, interval
        until(lambda: honest.counts["offers"] > served, SERVED_S, "it is served in the end")
        self._world.check_master()
        return wait

    def leave(self) -> None:
        """Remove all of them."""
        for member in filter(None, self._members):
            with contextlib.suppress(OSError, http.client.HTTPException, AssertionError):
                member.call("TEARDOWN")
            member.disconnect()
            self._world.frameworks.remove(member)
        self._members.clear()
        for agent in [each for each in self._world.agents if each.name.startswith(AGENT)]:
            agent.crash()
            self._world.agents.remove(agent)
            shutil.rmtree(agent.directory, ignore_errors=True)
        for role in self._manner.guarantees:
            set_quota(self._world, role)

    def _say(self, member: Framework, number: int, call: object) -> None:
        match call:
            case Leave():
                member.call("TEARDOWN")
                member.disconnect()
                self._members[number] = None
            case Update():
                info = {**member._info, **_info(call.info), "id": {"value": member.framework_id}}
                # A framework whose update has no constraints loses them.
                more = {"offer_constraints": _constraints(call.info)} if call.info.excludes else {}
                member.call("UPDATE_FRAMEWORK", framework_info=info, suppressed_roles=[], **more)
            case Request():
                needs = [{"resources": _resources(each)} for each in call.needs]
                member.call("REQUEST", requests=needs)
            case Suppress():
                member.call("SUPPRESS", roles=list(call.roles))
            case Revive():
                member.call("REVIVE", roles=list(call.roles))

    def _join(self, info: Info) -> None:
        member = Framework(
            self._world.address,
            info.name,
            info.roles or ("*",),
            self._answer,
            capabilities=(*(() if info.old else ("MULTI_ROLE",)), *info.capabilities),
            suppressed=info.suppressed,
            constraints=_constraints(info) if info.excludes else None,
            info=_info(info),
        )
        try:
            member.start()
        except AssertionError:
            self.refused["SUBSCRIBE"] += 1
            self._members.append(None)
        else:
            self._world.frameworks.append(member)
            self._members.append(member)

    def _answer(self, framework: Framework, offer: Offer) -> None:
        waits = self._manner.refuse_s
        wait_s = waits[next(self._answers) % len(waits)]
        cpus = [each for each in offer["resources"] if each["name"] == "cpus"]
        several = min(self._left, RESERVED_AT_ONCE) if cpus else 0
        self._left -= several
        operations = [_reserve(self._left + each, role_of(offer)) for each in range(several)]
        if any(plain(each) and each["name"] == "disk" for each in offer["resources"]):
            volumes = min(self._volumes_left, VOLUMES_AT_ONCE)
            self._volumes_left -= volumes
            numbers = range(self._volumes_left, self._volumes_left + volumes)
            operations += _volumes(numbers, role_of(offer)) if volumes else []
        with contextlib.suppress(OSError, http.client.HTTPException):
            if operations:
                framework.accept(offer, operations, 0.0)
            else:
                framework.decline(offer, wait_s)


def play(
    mesos: Mesos, manner: Manner, *, built_in: bool, intervals: int = INTERVALS
) -> TenantFigures:
    """Play a manner beside an honest framework; returns the effects."""
    figures = TenantFigures(manner.name, built_in)
    with World(mesos, agents=2, built_in=built_in) as world:
        honest = world.framework("honest", "honest", manner=refuse(0.0))
        until(lambda: honest.counts["offers"], SERVED_S, "the honest framework is served")
        if not built_in:
            world.sidecar.until_compiled()  # loading takes memory
        processes = [world.master, *([] if built_in else [world.sidecar.child])]
        before = [figures_of(each.pid).memory_mib for each in processes if each]
        ends = ends_of(world)
        tenants = Tenants(world, manner)
        figures.wait = tenants.visit(honest, intervals)
        after = [figures_of(each.pid).peak_mib for each in processes if each]
        more = [most - least for most, least in zip(after, before, strict=True)]
        figures.master_mib, figures.sidecar_mib = (*more, 0.0)[:2]
        figures.ends = more_ends(ends, ends_of(world))
        figures.refused = tenants.refused
    return figures


def _runs(world: World) -> int:
    metrics = world.operator.metrics()
    return next(int(metrics[name]) for name in RUNS if name in metrics)


def ends_of(world: World) -> dict[str, int]:
    """Sessions that ended, by reason."""
    metrics, prefix = world.operator.metrics(), "allocator/sidecar/ends/"
    return {
        name.removeprefix(prefix): int(n) for name, n in metrics.items() if name.startswith(prefix)
    }


def more_ends(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    """The increase of each counter."""
    return {how: n - before.get(how, 0) for how, n in after.items() if n > before.get(how, 0)}


def _info(info: Info) -> dict[str, Any]:
    """The fields of a `FrameworkInfo` that are set."""
    found: dict[str, Any] = {
        "user": info.user,
        "name": info.name,
        "labels": {"labels": [{"key": key, "value": value} for key, value in info.labels]},
        "offer_filters": {
            role: {"min_allocatable_resources": {"quantities": list(map(_quantities, any_of))}}
            for role, any_of in info.minimum.items()
        },
        **({} if info.old else {"roles": list(info.roles)}),
    }
    if info.principal:
        found["principal"] = info.principal
    return found


def _quantities(amounts: Amounts) -> dict[str, Any]:
    # JSON has no numbers that are not finite.
    sound = {name: each for name, each in amounts.items() if math.isfinite(each)}
    return {"quantities": {name: {"value": each} for name, each in sound.items()}}


def _resources(amounts: Amounts) -> list[dict[str, Any]]:
    return [
        {"name": name, "type": "SCALAR", "scalar": {"value": each}}
        for name, each in amounts.items()
        if math.isfinite(each)
    ]


def _constraints(info: Info) -> dict[str, Any]:
    """Offer constraints that no agent meets."""
    unmet = {"selector": {"attribute_name": "nobody-has-it"}, "predicate": {"exists": {}}}
    groups = {"groups": [{"attribute_constraints": [unmet]}]}
    return {"role_constraints": dict.fromkeys(info.roles, groups)}


def _reserve(number: int, role: str) -> dict[str, Any]:
    """A reservation with a label of its own."""
    label = {"labels": [{"key": "number", "value": str(number)}]}
    reservation = {"type": "DYNAMIC", "role": role, "labels": label}
    cpus = {
        "name": "cpus",
        "type": "SCALAR",
        "scalar": {"value": 0.001},
        "allocation_info": {"role": role},
        "reservations": [reservation],
    }
    return {"type": "RESERVE", "reserve": {"resources": [cpus]}}


def _volumes(numbers: Sequence[int], role: str) -> list[dict[str, Any]]:
    """Space that is reserved for volumes, and as many volumes of a thousandth of a MiB on it."""

    def space(mib: float, **more: Any) -> dict[str, Any]:
        return reserved(scalar("disk", mib, role, **more), role)

    volumes = [
        space(
            0.001,
            disk={
                "persistence": {"id": f"v{number}"},
                "volume": {"container_path": "v", "mode": "RW"},
            },
        )
        for number in numbers
    ]
    return [
        {"type": "RESERVE", "reserve": {"resources": [space(0.001 * len(numbers))]}},
        {"type": "CREATE", "create": {"volumes": volumes}},
    ]


def _resources_of(words: AgentWords) -> list[dict[str, Any]]:
    """The resources of an agent."""
    found = _resources(words.resources)
    found += [
        {**_resources({"cpus": each})[0], "reservations": [{"type": "STATIC", "role": role}]}
        for role, each in words.reserved.items()
    ]
    for name, spans in words.ranges.items():
        pairs = [{"begin": first, "end": last} for first, last in spans]
        found.append({"name": name, "type": "RANGES", "ranges": {"range": pairs}})
    for name, items in words.sets.items():
        found.append({"name": name, "type": "SET", "set": {"item": list(items)}})
    found += [scalar("disk", 1.0, disk={"source": _source(each)}) for each in words.disks]
    return found


def _source(disk: Disk) -> dict[str, Any]:
    if disk.source in {"PATH", "MOUNT"}:
        return {"type": disk.source, disk.source.lower(): {"root": disk.which}}
    return {"type": disk.source, "id": disk.which, "profile": disk.profile}


def _flags(words: AgentWords) -> dict[str, str]:
    """Further flags of an agent; values that no argument can contain are left out."""
    flags = {}
    if words.hostname:
        flags["hostname"] = words.hostname
    pairs = [(name, value) for name, value in words.attributes if name and value]
    if pairs:
        flags["attributes"] = ";".join(f"{name}:{value}" for name, value in pairs[:1000])
    if words.region:
        domain = {"region": {"name": words.region}, "zone": {"name": words.zone}}
        flags["domain"] = json.dumps({"fault_domain": domain})
    return {name: _argument(value) for name, value in flags.items()}


def _argument(text: str) -> str:
    return text.replace("\0", "")[:100_000]
