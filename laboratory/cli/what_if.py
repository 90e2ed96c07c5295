"""`mesos-allocator replay --policy`: a recorded day under other policies."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from allocator.cli.render.terminal import console, table_of
from allocator.cli.tree import Exit, expect, fail
from allocator.plain import json_text
from laboratory.resources import NAMES

if TYPE_CHECKING:
    from allocator.core import PolicySpec
    from laboratory.experiments.what_if import Outcome

NOTES = """Assumptions: a task is what a framework released in one piece. Its framework wanted it
since it subscribed, revived, or last declined an offer that would have fit it. The task takes the
same time on any agent, and is launched on the first offer that fits it.

A journal does not say what a framework wanted but never ran, what it would have done with other
offers, or which tasks depend on each other. Reserved and revocable resources count as unreserved
and non-revocable.

Therefore compare the policies with the policy in force as played here, not with the recorded day:
the difference between these two shows how well the model describes your frameworks."""


class Question:
    """The comparison of a recorded day under several policies.

    `make`: constructor of the replay's allocators; it records the day that they replay.
    """

    def __init__(self, specs: Sequence["PolicySpec"], out: Path | None) -> None:
        from laboratory.workloads.recorded_day import DayRecorder, watched

        self._specs = specs
        self._out = out
        self._recorder = DayRecorder()
        self.make = watched(self._recorder)

    def play(self) -> list["Outcome"]:
        """Play the recorded day under the policy in force at its end, and under the others."""
        from laboratory.experiments.what_if import as_recorded, play_day

        day = self._recorder.finish()
        if day.settings is None or not day.ran:
            fail(Exit.FAILURE, "--policy: the journal has no resources in use; nothing to play")
        now = day.settings.policy
        runs = [(now, f"{now.name} {now.mode}, in force")]
        runs += [(spec, f"{spec.name} {spec.mode}") for spec in self._specs]
        outcomes = [as_recorded(day), *(play_day(day, spec, name) for spec, name in runs)]
        if self._out is not None:
            _keep(self._out, outcomes)
        return outcomes

    def print(self) -> None:
        """Play, and print a table of totals, then one by role."""
        outcomes = self.play()
        out, day = console(), self._recorder.day
        span_s = (day.end_ms - day.begin_ms) / 1000
        out.print(
            f"\n{span_s:.0f} s, {len(day.agents)} agents, {len(day.frameworks)} frameworks,"
            f" {len(day.ran)} tasks, of which {day.unfinished} still ran at the end\n"
        )
        out.print(_whole(outcomes))
        out.print()
        out.print(_by_role(outcomes))
        for each in outcomes:
            if each.unfinished:
                out.print(f"\n{each.name}: not all tasks finished: {each.unfinished}")
        out.print(f"\n{NOTES}")
        if self._out is not None:
            out.print(f"\nfigures and a picture are in {self._out}/")


def ask(names: Sequence[str], mode: str | None, out: Path | None) -> Question | None:
    """Check the options; returns None if no policy is named."""
    if not names:
        if mode is not None or out is not None:
            fail(Exit.USAGE, "--mode and --out need --policy")
        return None
    from allocator.core import PolicySpec
    from allocator.policies import MODES, POLICIES

    for name in names:
        expect("--policy", name, POLICIES)
    return Question([PolicySpec(name, mode=mode or MODES[0]) for name in names], out)


def _whole(outcomes: Sequence["Outcome"]) -> Table:
    kinds = list(outcomes[0].used)
    used = [f">{NAMES.get(kind, kind)} %" for kind in kinds]
    heads = ["", ">tasks", ">last ends s", *used, ">wait mean s", ">95 % s", ">longest s"]
    rows = []
    for each in outcomes:
        numbers = (each.makespan_s, *(each.used[kind] * 100 for kind in kinds))
        waits = (each.wait_mean_s, each.wait_p95_s, each.wait_max_s)
        texts = (f"{number:.1f}" for number in (*numbers, *waits))
        rows.append((each.name, each.tasks, *texts))
    return table_of(heads, rows)


def _by_role(outcomes: Sequence["Outcome"]) -> Table:
    rows = []
    for role in sorted({role for each in outcomes for role in each.role_share}):
        cells = (
            f"{each.role_share.get(role, 0.0) * 100:.1f}, {each.role_wait_s.get(role, 0.0):.1f}"
            for each in outcomes
        )
        rows.append((role, *cells))
    names = [f">{each.name}" for each in outcomes]
    return table_of(["role: dominant share %, mean wait s", *names], rows)


def _keep(directory: Path, outcomes: Sequence["Outcome"]) -> None:
    from laboratory.experiments.what_if_picture import draw_what_if as draw

    directory.mkdir(parents=True, exist_ok=True)
    text = json_text([asdict(each) for each in outcomes], indent=2)
    (directory / "what-if.json").write_text(text + "\n", encoding="utf-8")
    draw(directory / "what-if.png", outcomes)
