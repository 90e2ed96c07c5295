"""`allocator-lab replay`: a recorded day under other policies."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from allocator.cli.local.plugins import Plugins, load_policies
from allocator.cli.local.replay import AsJson, Checked, Paths, read_journals
from allocator.cli.remote import completing
from allocator.cli.remote.completing import Mode
from allocator.cli.tree import Exit, Playing, directory, expect, fail, shown_example
from allocator.plain import json_text

if TYPE_CHECKING:
    from allocator.core import PolicySpec
    from laboratory.experiments.what_if import Outcome

HELP = """Run the tasks of a recorded day under other policies, and compare the results.

First replays the journal of a sidecar, with the same report as `mesos-allocator replay`. Then runs
the recorded tasks on an emulated master, under the policy that was in force and under the named
policies, and compares shares, utilisation and waiting times. Exit codes: 0 all as recorded, 1
differences, damage, or no tasks to run, 2 wrong usage.
"""


class DayComparison:
    """The comparison of a recorded day under several policies.

    `make`: constructor of the replay's allocators, which record the day that they replay.
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
            fail(Exit.FAILURE, "the journal has no resources in use; nothing to play")
        now = day.settings.policy
        runs = [(now, f"{now.name} {now.mode}, in force")]
        runs += [(spec, f"{spec.name} {spec.mode}") for spec in self._specs]
        outcomes = [as_recorded(day), *(play_day(day, spec, name) for spec, name in runs)]
        if self._out is not None:
            _keep(self._out, outcomes)
        return outcomes

    def print(self) -> None:
        """Play, and print a table of totals, then one by role."""
        from allocator.cli.render.terminal import console
        from laboratory.cli.render.day_tables import NOTES, roles_table, totals_table

        outcomes = self.play()
        out, day = console(), self._recorder.day
        span_s = (day.end_ms - day.begin_ms) / 1000
        out.print(
            f"\n{span_s:.0f} s, {len(day.agents)} agents, {len(day.frameworks)} frameworks,"
            f" {len(day.ran)} tasks, of which {day.unfinished} still ran at the end\n"
        )
        out.print(totals_table(outcomes))
        out.print()
        out.print(roles_table(outcomes))
        for each in outcomes:
            if each.unfinished:
                out.print(f"\n{each.name}: not all tasks finished: {each.unfinished}")
        out.print(f"\n{NOTES}")
        if self._out is not None:
            out.print(f"\nfigures and a picture are in {self._out}/")


def register(app: typer.Typer) -> None:
    example = "replay /var/lib/mesos-allocator --policy tsf --mode characterised"
    app.command(help=HELP, cls=Playing, epilog=shown_example(example, "allocator-lab"))(replay)


def replay(
    paths: Paths,
    policy: Annotated[
        list[str],
        typer.Option(
            metavar="NAME",
            help="Run the tasks under this policy; may be repeated.",
            autocompletion=completing.policies,
        ),
    ],
    mode: Annotated[Mode, typer.Option(help="Mode of --policy.")] = Mode.OBLIVIOUS,
    check: Checked = True,
    as_json: AsJson = False,
    plugin: Plugins = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", callback=directory, help="Directory for the results."),
    ] = None,
) -> None:
    from allocator.core import PolicySpec
    from allocator.policies import POLICIES

    load_policies(plugin)
    for name in policy:
        expect("--policy", name, POLICIES)
    comparison = DayComparison([PolicySpec(name, mode=mode) for name in policy], out)
    report = read_journals(paths, comparison.make, check=check, quiet=as_json)
    if as_json:
        played = {"what_if": list(map(asdict, comparison.play()))}
        typer.echo(json_text(report.as_dict() | played, indent=2))
    else:
        comparison.print()
    report.end()


def _keep(directory: Path, outcomes: Sequence["Outcome"]) -> None:
    from laboratory.experiments.what_if_picture import draw_what_if as draw

    directory.mkdir(parents=True, exist_ok=True)
    text = json_text([asdict(each) for each in outcomes], indent=2)
    (directory / "what-if.json").write_text(text + "\n", encoding="utf-8")
    draw(directory / "what-if.png", outcomes)
