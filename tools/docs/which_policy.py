"""Which policy for which cluster: `python tools/docs/which_policy.py [SCENARIO ...]` plays them.

Each result is kept in `data/which-policy/`, with its seeds; `make docs` writes the page from what
is kept. What is said of a scenario here has no figure in it: figures are computed.
"""

import json
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
SCENARIOS = HERE.parents[1] / "examples" / "scenarios"
KEPT = HERE / "data" / "which-policy"

POLICIES = ("drf", "ps-dsf", "rps-dsf", "bf-drf", "choosy")
MODES = ("oblivious", "characterised")

CLOSE = 0.02
"""Whatever is worse than the best by this part at most counts as good as it."""


COMPARED = {"end_s": "The last job ended first under", "wait_s": "Jobs waited least under"}


class Kind(NamedTuple):
    """A kind of cluster.

    Attributes
    ----------
    scenario : str
        Name of the file that is played.
    title, advice : str
    seeds : int
    """

    scenario: str
    title: str
    advice: str
    seeds: int


KINDS = (
    Kind(
        "spark_on_unequal_agents",
        "Agents of different types, tasks of different proportions",
        "Use a policy that takes each agent's capacity into account (`ps-dsf`, `rps-dsf`), or one"
        " that selects the agent that fits best (`bf-drf`), in characterised mode.",
        10,
    ),
    Kind(
        "one_greedy_framework",
        "A framework that keeps whole offers",
        "Here the mode matters, not the policy: use characterised mode, in which the greedy"
        " framework is offered only whole tasks, and the rest is left for the others.",
        10,
    ),
    Kind(
        "quota_too_large",
        "A guarantee that is larger than the cluster",
        "No policy helps much, because guarantees take precedence over shares: reduce the"
        " guarantee.",
        1,
    ),
    Kind(
        "gpus_and_cpu_jobs",
        "CPU jobs on agents with GPUs, and tasks that start together",
        "No policy solves this problem: frameworks that hold GPUs until they have enough for all"
        " of their tasks block each other, and GPUs stay idle. Let frameworks state their gangs:"
        " see below.",
        3,
    ),
    Kind(
        "two_gangs",
        "Two gangs for one place",
        "No policy solves this problem: offers are made task by task, and each framework keeps"
        " half of the GPUs.",
        1,
    ),
    Kind(
        "two_gangs_stated",
        "Two gangs for one place, stated by a label",
        "Let frameworks [state their gangs](modes.md#gangs-tasks-that-start-together), or set them"
        " (`mesos-allocator gang set`): then one gang starts, and the other one after it.",
        1,
    ),
)

HEAD = """\
# Which policy for which cluster

<!-- `make docs` writes this file. -->

This page compares policies on six kinds of clusters, to help you choose one. The clusters are
scenarios in `examples/scenarios`, each simulated with the real allocator in both modes. All
policies get the same workloads, so rows of a table can be compared.

Figures are means over random seeds, with 95 % confidence intervals, which are wide if there are few
seeds. The columns are:

- *ended*: jobs that had ended when the simulation ended, out of all jobs;
- *wait*: time from a job's registration to its first task;
- *even*: Jain's fairness index of the shares of roles, while all roles had jobs.

Your own cluster differs from these. [Describe it](../how-to/simulate.md) in a file like these, and
simulate it, or [replay a recorded day](../how-to/replay.md) under several policies. Before you put
a policy in force, run it as a shadow policy for a while (`mesos-allocator shadow set`).
"""


def page(directory: Path = KEPT) -> str:
    """The whole page, from the results that are kept."""
    return "\n".join([HEAD, *(_section(kind, _load(directory, kind)) for kind in KINDS)])


def _load(directory: Path, kind: Kind) -> Mapping[str, Any]:
    return json.loads((directory / f"{kind.scenario}.json").read_text("utf-8"))


def _section(kind: Kind, kept: Mapping[str, Any]) -> str:
    scenario = tomllib.loads((SCENARIOS / f"{kind.scenario}.toml").read_text("utf-8"))
    seeds = "one seed" if kept["seeds"] == 1 else f"{kept['seeds']} seeds"
    resources = list(kept["rows"][0]["used"])
    head = ["policy", "mode", "ended", "last end (s)", "wait (s)", "even"]
    head += [f"{name} in use (%)" for name in resources]
    lines = [f"## {kind.title}\n", f"{scenario['about']}\n", f"{kind.advice}\n"]
    lines += [*(f"- {text}" for text in findings(kept["rows"])), ""]
    lines += [f"`{kind.scenario}.toml`, {seeds}:\n"]
    lines += ["| " + " | ".join(head) + " |", "|---|---|" + "---:|" * (len(head) - 2)]
    for row in kept["rows"]:
        cells = [f"`{row['policy']}`", row["mode"], f"{row['ended']} of {row['jobs']}"]
        numbers = [row["end_s"], row["wait_s"], row["even"], *row["used"].values()]
        lines.append("| " + " | ".join([*cells, *map(_number, numbers)]) + " |")
    return "\n".join(lines) + "\n"


def _number(cell: Mapping[str, float | None]) -> str:
    mean, half = cell["mean"], cell["half"]
    if mean is None:
        return "-"
    return f"{mean:.4g}" + ("" if half is None else f" ± {half:.2g}")


def findings(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What the figures say: who ended most and first, who waited least, which mode was better."""
    most = max(row["ended"] for row in rows)
    ended = [row for row in rows if row["ended"] == most]
    share = "All jobs" if most == rows[0]["jobs"] else f"Most jobs ({most} of {rows[0]['jobs']})"
    yield f"{share} ended under {_names(ended) if len(ended) < len(rows) else 'every policy'}."
    for key, text in COMPARED.items():
        measured = [row for row in ended if row[key]["mean"] is not None]
        if len(measured) < 2:
            continue
        least = min(row[key]["mean"] for row in measured)
        worst = max(measured, key=lambda row: row[key]["mean"])
        near = [row for row in measured if row[key]["mean"] <= least * (1 + CLOSE)]
        if len(near) < len(measured):
            yield (
                f"{text} {_names(near)} ({least:.4g} s, or at most {CLOSE:.0%} more); it was"
                f" {worst[key]['mean']:.4g} s under `{worst['policy']}` {worst['mode']}."
            )


def _names(rows: Sequence[Mapping[str, Any]]) -> str:
    """Policies and modes in words: a mode under which all are listed is named once."""
    parts = []
    for mode in MODES:
        names = [f"`{row['policy']}`" for row in rows if row["mode"] == mode]
        if names:
            parts.append(f"{', '.join(names)} ({mode})")
    return " and ".join(parts)


# --------------------------------------------------------------------------------------- playing


def compute(kind: Kind, jobs: int = -1) -> None:
    """Play a scenario, and keep what came out."""
    from allocator.server.system import loop_cache
    from laboratory.experiments.spread import spread
    from laboratory.scenarios.running import ScenarioCell, run
    from laboratory.scenarios.schema import read
    from laboratory.scenarios.sweep_report import by_policy

    loop_cache.prepare()
    scenario = read(SCENARIOS / f"{kind.scenario}.toml")
    cells = [
        ScenarioCell(policy, mode, seed)
        for policy in POLICIES
        for mode in MODES
        for seed in range(kind.seeds)
    ]
    results = list(spread(partial(run, scenario), cells, jobs=jobs, backend="loky", cluster=None))
    rows = [_row(policy, mode, runs) for (policy, mode), runs in by_policy(results).items()]
    KEPT.mkdir(exist_ok=True)
    lines = ",\n".join(json.dumps(row) for row in rows)
    text = f'{{"seeds": {kind.seeds}, "rows": [\n{lines}\n]}}\n'
    (KEPT / f"{kind.scenario}.json").write_text(text, encoding="utf-8")


def _row(policy: str, mode: str, runs: Sequence[Any]) -> dict[str, Any]:
    return {
        "policy": policy,
        "mode": mode,
        "ended": sum(run.ended for run in runs),
        "jobs": sum(run.jobs for run in runs),
        "end_s": _mean([run.end_s for run in runs]),
        "wait_s": _mean([_wait_s(run) for run in runs]),
        "even": _mean([run.fairness for run in runs]),
        "used": {name: _mean([100 * run.used[name] for run in runs]) for name in runs[0].kinds},
    }


def _wait_s(run: Any) -> float:  # noqa: ANN401
    """Mean over the jobs, for each group has its own."""
    jobs: int = sum(group.jobs for group in run.groups)
    return float(sum(group.wait_mean_s * group.jobs for group in run.groups) / jobs)


def _mean(values: Sequence[float]) -> dict[str, float | None]:
    from laboratory.reports.run_report import interval

    found = interval(values)
    pair = {"mean": found.mean, "half": found.half}
    return {key: None if value != value else round(value, 6) for key, value in pair.items()}  # noqa: PLR0124


if __name__ == "__main__":
    for each in KINDS:
        if not sys.argv[1:] or each.scenario in sys.argv[1:]:
            compute(each)
