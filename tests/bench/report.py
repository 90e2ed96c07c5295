"""All benchmarks in one run, and a report of them: tables, plots, and the machine.

Each section is a process of its own, so that sections do not share loaded code. The yardstick is
measured before and after each: if it moved, the machine was busy with other work, and the section's
wall times are unreliable. `report.md` and the plots are written to ``--out``.
"""

import argparse
import datetime as dt
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.bench.yardstick import processor, yardstick_ms


class Section(NamedTuple):
    """A benchmark, and its description.

    words: the benchmark, and its arguments.
    neighbours: number of processes per processor that only consume time during the benchmark.
    """

    title: str
    words: tuple[str, ...]
    about: str
    neighbours: int = 0


SIZES = "1000x100,10000x1000,10000x3000"
SECTIONS = (
    Section(
        "Gauges beside those of an earlier commit",
        ("times",),
        "Processor time of small pieces of work, and its ratio to what it was.",
    ),
    Section(
        "The grid of Mesos's own benchmarks, in the core",
        ("grid", "--json", "{out}/grid.json"),
        "Processor time of one decision, in milliseconds, the least of five; `add all` has the"
        " events that tell of the agents, and the first cycle.",
    ),
    Section("Policies by size", ("bench_cycle",), "One full cycle; wall time in milliseconds."),
    Section(
        "One agent freed where all is used",
        ("bench_one_agent", "--holdings", "1000000"),
        "50,000 agents, 6,000 frameworks, a million holdings.",
    ),
    Section(
        "Events through a real stream",
        ("bench_events",),
        "A real sidecar, a real Unix socket; a row of a column counts as an event.",
    ),
    Section(
        "The module's brain alone",
        ("brain_bench",),
        "Its longest steps: none may hold a master's actor for more than 20 ms.",
    ),
    Section(
        "Module and sidecar beside the built-in allocator",
        ("driver", "--sidecar", "{sidecar}", "--sizes", SIZES, "--rounds", "5"),
        "Both in one process, by the same calls. How fast the built-in is depends on how libmesos"
        " was compiled.",
    ),
    Section(
        "The same with busy neighbours",
        ("driver", "--sidecar", "{sidecar}", "--sizes", "10000x1000", "--rounds", "3"),
        "Three processes for each processor take time beside it: wall times are what counts.",
        neighbours=3,
    ),
    Section("Planners", ("bench_planners",), "Policies that work out a target first."),
    Section("Checkpoints", ("bench_checkpoint",), "What the journal keeps of a large state."),
)


BUILT = {
    "brain_bench": Path(".cache/module/shipped/tests/brain_bench"),
    "driver": Path(".cache/module/mesos/adapter/driver"),
}
"""Compiled benchmarks: by ``make cpp-all``, and by ``make module MESOS_ROOT=...``."""

VERBATIM = {*BUILT, "bench_checkpoint"}
"""Benchmarks whose output is not Markdown."""


class Outcome(NamedTuple):
    """Output and times of a section, and the speed of the machine before and after."""

    section: Section
    text: str
    failed: bool
    wall_s: float
    cpu_s: float
    yard_ms: tuple[float, float]


def run(section: Section, out: Path) -> Outcome:
    """Run one section in a process of its own."""
    name, *more = section.words
    built = BUILT.get(name)
    if built is not None and not built.exists():
        text = f"Left out: there is no `{built}`; `make cpp-all` or `make module` builds it."
        return Outcome(section, text, False, 0.0, 0.0, (1.0, 1.0))
    command = [str(built)] if built else [sys.executable, "-m", f"tests.bench.{name}"]
    sidecar = Path(sys.executable).with_name("mesos-allocator")
    command += [word.format(out=out, sidecar=sidecar) for word in more]
    before = yardstick_ms()
    begun_s, used = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    with busy(section.neighbours * (os.cpu_count() or 1)):
        child = subprocess.run(command, capture_output=True, text=True, check=False)
    wall_s, after = time.monotonic() - begun_s, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
    failed = child.returncode != 0
    text = child.stdout + (f"\n```\n{child.stderr[-3000:]}\n```\n" if failed else "")
    return Outcome(section, text, failed, wall_s, cpu_s, (before, yardstick_ms()))


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Run this number of processes that only consume processor time."""
    with ExitStack() as stack:
        for _ in range(count):
            child = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            stack.callback(child.wait)
            stack.callback(child.kill)
        yield


def facts() -> list[str]:
    """The machine and the software versions."""
    memory_mib = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    ).stdout.strip()
    now = dt.datetime.now(dt.UTC)
    return [
        f"- When: {now:%Y-%m-%d %H:%M} UTC; commit {commit or 'unknown'}",
        f"- Processor: {os.cpu_count()} of {processor()}; {memory_mib:,} MiB of memory",
        f"- {platform.system()} {platform.release()}, Python {platform.python_version()}",
        f"- Load average at the begin: {', '.join(f'{load:.2f}' for load in os.getloadavg())}",
        "- Chance: every benchmark seeds its own generator with a number that stands in it.",
    ]


def write(out: Path, outcomes: Sequence[Outcome], head: Sequence[str]) -> None:
    """Write the report of the sections so far."""
    lines = ["# Benchmarks", "", *head, ""]
    for each in outcomes:
        before, after = each.yard_ms
        moved = f", moved by {abs(after / before - 1):.0%}"
        took = f"{each.wall_s:.0f} s, of the processor {each.cpu_s:.0f} s"
        yard = f"yardstick {before:.1f} ms before, {after:.1f} ms after{moved}"
        title = each.section.title + (" (FAILED)" if each.failed else "")
        text = each.text.strip()
        if each.section.words[0] in VERBATIM:
            text = f"```\n{text}\n```"
        lines += [f"## {title}", "", each.section.about, "", text, "", f"*{took}; {yard}.*", ""]
        if each.section.words[0] == "grid" and not each.failed:
            lines += [f"![]({draw_grid(out).name})", ""]
    (out / "report.md").write_text("\n".join(lines))


def draw_grid(out: Path) -> Path:
    """Draw each workload over the number of agents, a line for each number of frameworks."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    rows = json.loads((out / "grid.json").read_text())["rows"]
    names = [name for name in rows[0] if name not in {"agents", "frameworks"}]
    figure, axes = plt.subplots(2, (len(names) + 1) // 2, figsize=(16, 7), sharex=True)
    for axis, name in zip(axes.flat, names, strict=False):
        for frameworks in sorted({row["frameworks"] for row in rows}):
            some = [row for row in rows if row["frameworks"] == frameworks]
            axis.loglog(
                [row["agents"] for row in some],
                [max(row[name], 1e-2) for row in some],
                marker="o",
                markersize=3,
                label=f"{frameworks:,}",
            )
        axis.set_title(name)
        axis.grid(visible=True, alpha=0.3)
    for axis in axes[:, 0]:
        axis.set_ylabel("processor time, ms")
    for axis in axes[-1]:
        axis.set_xlabel("agents")
    axes.flat[0].legend(title="frameworks", fontsize="small")
    figure.tight_layout()
    path = out / "grid.svg"
    figure.savefig(path)
    plt.close(figure)
    return path


def main() -> None:
    """Run all sections, or the named ones; the report grows with each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("bench-out"))
    parser.add_argument(
        "--only",
        nargs="*",
        choices=[section.words[0] for section in SECTIONS],
        help="these sections alone",
    )
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    head, outcomes = facts(), []
    for section in SECTIONS:
        if given.only and section.words[0] not in given.only:
            continue
        print(f"{section.title} ...", flush=True)
        outcomes.append(run(section, given.out))
        write(given.out, outcomes, head)
    print(f"{given.out}/report.md")
    sys.exit(any(each.failed for each in outcomes))


if __name__ == "__main__":
    main()
