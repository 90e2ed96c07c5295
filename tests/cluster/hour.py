"""The crew of hostile tenants against one real master and one sidecar, one manner after the other.

    python -m tests.cluster.hour --seconds 3600 [--built-in] [MANNER...] > crew.jsonl

`test_tenants` starts a new master for each manner; here all manners run during one master's life,
beside one honest framework that declines its offers. Each line of the output has the results of a
manner, the last one those of the whole run. Memory is in MiB, of the master and of the sidecar.
"""

import argparse
import http.client
import itertools
import json
import sys
import time
from collections.abc import Iterator
from typing import Any

from laboratory.links.sidecar_process import figures_of
from tests.cluster.framework import Framework
from tests.cluster.framework_behaviours import refuse
from tests.cluster.mesos import Mesos, find
from tests.cluster.processes import until
from tests.cluster.tenants import SERVED_S, Tenants, ends_of, more_ends
from tests.cluster.world import World
from tests.hostile.crew import CREW
from tests.hostile.words import Manner


def hour(
    mesos: Mesos, crew: list[Manner], seconds: float, *, built_in: bool, flags: dict[str, str]
) -> Iterator[dict[str, Any]]:
    """Play manners in rounds until the time is up; returns a row for each."""
    with World(mesos, agents=2, built_in=built_in, flags=flags) as world:
        honest = world.framework("honest", "honest", manner=refuse(0.0))
        until(lambda: honest.counts["offers"], SERVED_S, "the honest framework is served")
        if not built_in:
            world.sidecar.until_compiled()  # loading takes memory
        first, first_ends, most = _memory(world), ends_of(world), _memory(world)
        yield {"at first": first}
        begun_s, plays = time.monotonic(), 0
        while time.monotonic() - begun_s < seconds:
            row = _play(world, honest, crew[plays % len(crew)])
            most = [max(pair) for pair in zip(most, row["mib"], strict=True)]
            plays += 1
            yield row
        waits = [after - before for before, after in itertools.pairwise(honest.offered_at)]
        yield {
            "seconds": round(time.monotonic() - begun_s),
            "manners played": plays,
            "at first": first,
            "most": most,
            "at last": _memory(world),
            "longest without an offer, s": round(max(waits, default=0.0), 1),
            "ends": more_ends(first_ends, ends_of(world)),
        }


def _play(world: World, honest: Framework, manner: Manner) -> dict[str, Any]:
    ends, tenants, begun_s = ends_of(world), Tenants(world, manner), time.monotonic()
    row: dict[str, Any] = {"manner": manner.name}
    try:
        row["wait"] = tenants.visit(honest)
    except (AssertionError, OSError, http.client.HTTPException) as error:
        row["wrong"] = repr(error)[:500]
    tenants.leave()
    row["ends"] = more_ends(ends, ends_of(world))
    row["took_s"] = round(time.monotonic() - begun_s, 1)
    return row | {"mib": _memory(world), "refused": dict(tenants.refused)}


def _memory(world: World) -> list[float]:
    processes = [world.master, *([] if world.built_in else [world.sidecar.child])]
    return [round(figures_of(each.pid).memory_mib, 1) for each in processes if each]


def main() -> None:
    """Play, and write each row as it is finished."""
    parser = argparse.ArgumentParser(description="hostile tenants before one real master")
    parser.add_argument("manners", nargs="*", metavar="MANNER", help="all where none is named")
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--built-in", action="store_true", help="with Mesos's own allocator")
    parser.add_argument(
        "--flag", action="append", default=[], metavar="NAME=VALUE", help="of mesos-master"
    )
    given = parser.parse_args()
    named = {each.name: each for each in CREW}
    crew = [named[each] for each in given.manners] or list(CREW)
    flags = dict(each.split("=", 1) for each in given.flag)
    for row in hour(find(), crew, given.seconds, built_in=given.built_in, flags=flags):
        sys.stdout.write(f"{json.dumps(row)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
