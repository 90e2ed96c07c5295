"""The text of advice: the same tables and sentences for terminal and page, and text to paste."""

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from allocator.core import PolicySpec
from laboratory.advise.advising import AdviceReport
from laboratory.advise.bottlenecks import Bottleneck
from laboratory.advise.comparing import Comparison, MeasureChange, Verdict
from laboratory.advise.limits import Bound, Finding, Sort, cut_down
from laboratory.advise.playing import AdviceRun, gangs_of, in_words
from laboratory.advise.recommending import amount, few

GUESSED = (
    (
        "A task is an amount that a framework released in one piece. It counts as wanted since its"
        " framework subscribed, revived, or last declined an offer that would have fit it. It takes"
        " the same time on any agent."
    ),
    (
        "The journal does not record what a framework wanted and never ran, what it would have done"
        " with other offers, or which of its tasks depend on others. A played framework launches a"
        " task on the first offer that holds it, and declines others with its most frequent"
        " filter."
    ),
    (
        "A framework that states what a task needs, and took most of its offers whole, is played as"
        " one that takes whole offers. If it never stated its demand, each amount that it took"
        " counts as a task."
    ),
    (
        "A framework with a gang of equal tasks, which it stated or an operator set, starts as many"
        " tasks at once. Gangs of unlike tasks are played as single tasks."
    ),
    "Reserved and revocable resources count as plain ones.",
    (
        "Operators' rules are those in force at the end of each day, from its beginning on."
        " Averages of past use, and what was used of budgets, begin at zero; `usage forget` is not"
        " repeated."
    ),
    "Fair shares are those of weighted max-min fairness of dominant shares, in one pool.",
)
"""Assumptions about facts that journals do not contain."""


class Table(NamedTuple):
    """A table of texts. A head that begins with > marks a column of numbers."""

    title: str
    heads: list[str]
    rows: list[list[str]]

    def columns(self, row: list[str]) -> list[tuple[str, str]]:
        """The cells of a row, each with its head."""
        return list(zip(self.heads, row, strict=True))


def in_hundredths(change: MeasureChange, unit: str = "") -> str:
    """A difference in percent, or in hundredths of the whole, with its interval.

    >>> from laboratory.reports.run_report import Interval
    >>> in_hundredths(MeasureChange(Interval(-0.2, 0.05), Verdict.LESS), " %")
    '-20 % (-25 to -15)'
    >>> in_hundredths(MeasureChange(Interval(-0.02, 0.05), Verdict.NOISE), " %")
    'noise (-7 to +3)'
    >>> in_hundredths(MeasureChange(Interval(0.2, float("nan")), Verdict.ONCE))
    '+20, once'
    """
    mean, half = change.by.mean * 100, change.by.half * 100
    if change.verdict is Verdict.SAME:
        return "the same"
    if np.isnan(half):
        return f"{mean:+.0f}{unit}, once"
    ends = f"({mean - half:+.0f} to {mean + half:+.0f})"
    return f"noise {ends}" if change.verdict is Verdict.NOISE else f"{mean:+.0f}{unit} {ends}"


def about(report: AdviceReport) -> list[str]:
    """Describe the days that were read, and problems with their journals."""
    lines = []
    for read, was in zip(report.days, report.recorded, strict=True):
        day = read.day
        hours = (day.end_ms - day.begin_ms) / 3_600_000
        ran = {task.framework for task in day.ran}
        gangs = len(gangs_of(day))
        idle = sum(1 for each in day.frameworks if each not in ran)
        line = (
            f"{read.name}: {hours:.1f} hours, {len(day.agents)} agents, {len(day.frameworks)}"
            f" frameworks, {len(day.ran)} tasks"
        )
        if day.unfinished:
            line += f", of which {day.unfinished} still ran at the end"
        if gangs:
            line += f"; {gangs} frameworks start their tasks as gangs"
        if idle:
            line += f"; {idle} frameworks ran nothing, so their needs are unknown"
        if read.played is not day:
            begin, end = (
                (when - day.begin_ms) / 3_600_000
                for when in (read.played.begin_ms, read.played.end_ms)
            )
            line += (
                f". The busiest part is played: hours {begin:.1f} to {end:.1f}, {was.tasks} tasks;"
                " tasks running at its beginning run on, and waiting ones begin to wait then"
            )
        lines.append(line)
        lines += [f"{read.name}: {remark}" for remark in read.remarks]
    return lines


def model(report: AdviceReport) -> str:
    """Compare the model with the recorded day."""
    played = [run.figures for run in report.base if run.seed == 0]
    pairs = list(zip(report.recorded, played, strict=True))
    was = float(np.mean([recorded.wait_s for recorded, _ in pairs]))
    now = float(np.mean([again.wait_s for _, again in pairs]))
    return (
        f"Played again under {in_words(report.now)}, the policy in force, tasks wait {now:.1f} s on"
        f" average; {was:.1f} s were recorded. The closer these are, the better the model is."
    )


def candidates(report: AdviceReport) -> Table:
    """All candidates and the policy in force, the best first."""
    heads = ["policy", ">tasks done", ">wait", ">mean wait s", ">95 % wait s", ">last ends s"]
    heads += [">fullest used %", ">fuller by", ">never began", ">decisions/s at most"]
    heads += [">at work %", ">runs"]
    base = report.base
    played: list[tuple[str, Comparison | None, Sequence[AdviceRun]]] = [
        (f"{in_words(report.now)} (in force)", None, base)
    ]
    played += [(each.name, each, report.runs[each.name]) for each in report.compared]
    if report.quotas is not None:
        name = f"{in_words(report.now)}, smaller guarantees"
        played.append((name, report.quotas, report.runs[report.quotas.name]))
    rows = [_candidate(*each) for each in played]
    if not np.isnan([run.gang_wait_s for run in base]).all():
        heads.append(">gangs wait s")
        for row, (_, _, runs) in zip(rows, played, strict=True):
            row.append(_gangs_wait(runs))
    return Table("Every policy that was played", heads, rows)


def _gangs_wait(runs: Sequence[AdviceRun]) -> str:
    waits_s = [run.gang_wait_s for run in _judged(runs) if not np.isnan(run.gang_wait_s)]
    return f"{np.mean(waits_s):.1f}" if waits_s else "-"


def _judged(runs: Sequence[AdviceRun]) -> Sequence[AdviceRun]:
    """Those with a seed, if there are any."""
    return [run for run in runs if run.seed] or runs


def _candidate(name: str, each: Comparison | None, runs: Sequence[AdviceRun]) -> list[str]:
    runs = _judged(runs)
    changes = ["", ""] if each is None else [in_hundredths(c, " %") for c in (each.stay, each.wait)]
    cells = [name, *changes]
    packed = [run.figures.packed for run in runs if not np.isnan(run.figures.packed)]
    cells.append(f"{np.mean([run.figures.wait_s for run in runs]):.1f}")
    cells.append(f"{np.mean([run.figures.wait_p95_s for run in runs]):.1f}")
    cells.append(f"{np.mean([run.figures.last_s for run in runs]):.0f}")
    cells.append(f"{np.mean(packed) * 100:.0f}" if packed else "-")
    cells.append("" if each is None else in_hundredths(each.packed))
    cells.append(str(sum(run.figures.never_began for run in runs)))
    cells.append(f"{np.median([run.decisions_per_s for run in runs]):.0f}")
    cells.append(f"{np.median([run.load for run in runs]) * 100:.2g}")
    return [*cells, str(len(runs))]


def roles(report: AdviceReport, each: Comparison) -> Table:
    heads = ["role", ">tasks done", ">mean wait s", ">share %", ">fair share %"]
    heads += [">shortfall %", ">shortfall change"]
    rows = []
    for role, change in each.roles.items():
        was, now = change.before, change.after
        cells = [role, in_hundredths(change.stay, " %"), f"{was.wait_s:.1f} -> {now.wait_s:.1f}"]
        cells += [f"{was.share * 100:.0f} -> {now.share * 100:.0f}", f"{was.fair * 100:.0f}"]
        cells.append(f"{was.short * 100:.0f} -> {now.short * 100:.0f}")
        rows.append([*cells, in_hundredths(change.short)])
    title = f"Gains and losses: {in_words(report.now)} -> {each.name}"
    return Table(title, heads, rows)


def told(report: AdviceReport) -> list[Comparison]:
    """The candidates that get a table of gains and losses: the advised one, and the best."""
    best = [each for each in report.compared if each.runs > 1][:3] or list(report.compared[:1])
    if report.advice.chosen is None:
        return best
    name = report.advice.chosen.name
    chosen = [each for each in report.compared if each.name == name]
    return [*chosen, *(each for each in best if each.name != name)][:3]


def bounds(found: Sequence[Bound]) -> Table:
    heads = ["role", "what", ">set", ">most used", ">in the way %", "finding", ">would do"]
    rows = []
    for each in found:
        if each.sort is Sort.WEIGHT:
            row = [each.role, "weight", f"{each.amount:g}", "", ""]
            both = f"{each.finding}: it and others waited in {each.in_way:.0%} of the time"
            rows.append([*row, both, ""])
            continue
        better = "" if each.better is None else amount(each.better, each.resource)
        row = [each.role, str(each.sort), amount(each.amount, each.resource)]
        row += [amount(each.peak, each.resource), f"{each.in_way * 100:.0f}", str(each.finding)]
        rows.append([*row, better if each.finding is not Finding.USEFUL else ""])
    return Table("Quotas, limits and weights", heads, rows)


def cuts(found: Sequence[Bottleneck]) -> Table:
    heads = ["agents", ">of all", "frameworks", "roles", ">time %", ">tasks waiting"]
    heads += [">agents each", ">the others have", ">free elsewhere %"]
    rows = [
        [
            few(each.agents),
            f"{len(each.agents)} of {each.of}",
            few(sorted(each.frameworks)),
            few(sorted(each.roles)),
            f"{each.part * 100:.0f}",
            f"{each.waiting:.1f}",
            f"{each.level:.2f}",
            "all they want" if np.isinf(each.next_level) else f"{each.next_level:.2f}",
            f"{each.free * 100:.0f}",
        ]
        for each in found
    ]
    return Table("Bottlenecks of constraints", heads, rows)


def tables(report: AdviceReport) -> Iterator[Table]:
    """All tables that have rows, in order."""
    every = [candidates(report), *(roles(report, each) for each in told(report))]
    every += [bounds(report.bounds), cuts(report.bottlenecks)]
    yield from (table for table in every if table.rows)


def sentences(report: AdviceReport) -> Iterator[tuple[str, list[str]]]:
    """The advice: titles with their paragraphs."""
    advice = report.advice
    yield advice.headline, list(advice.reasons)
    if advice.also:
        yield "Further changes", list(advice.also)


# The configuration to paste, and the call that sets quotas.


def toml_of(spec: PolicySpec) -> str:
    """Write a policy as a section of the configuration.

    >>> print(toml_of(PolicySpec("choosy", parameters={"unit": "tasks"})), end="")
    [policy]
    name = "choosy"
    selection = ""
    mode = "oblivious"
    flat = false
    <BLANKLINE>
    [policy.parameters]
    "unit" = "tasks"
    """
    lines = ["[policy]", f"name = {_text(spec.name)}", f"selection = {_text(spec.selection)}"]
    lines += [f"mode = {_text(spec.mode)}", f"flat = {str(spec.flat).lower()}"]
    for table, values in (("parameters", spec.parameters), ("subtrees", spec.subtrees)):
        if values:
            lines += ["", f"[policy.{table}]"]
            lines += [f"{_text(key)} = {_text(value)}" for key, value in sorted(values.items())]
    return "\n".join(lines) + "\n"


def to_paste(report: AdviceReport) -> str:
    """Write the configuration of the advised policy, or of the current one."""
    chosen = report.advice.chosen
    note = "in force" if chosen is None else "as advised"
    text = toml_of(report.now if chosen is None else chosen.spec)
    if chosen is not None and chosen.past is not None:
        lines = [f"{key} = {value:g}" for key, value in chosen.past._asdict().items()]
        text += "\n".join(["", "[fairness]", *lines, ""])
    if chosen is not None and chosen.collect_s is not None:
        text += f"\n[starvation]\ncollect_s = {chosen.collect_s}\n"
    return f"# The policy {note}: for config.toml, then SIGHUP.\n{text}"


def quota_calls(report: AdviceReport) -> str:
    """Write the call to the master that reduces guarantees; empty: none is advised."""
    changed = cut_down(report.days[-1].day, report.bounds) if report.quotas is not None else {}
    if not changed:
        return ""
    configs = [
        {
            "role": role,
            "guarantees": {name: {"value": n / 1000} for name, n in quota.guarantees.items()},
            "limits": {name: {"value": n / 1000} for name, n in quota.limits.items()},
        }
        for role, quota in changed.items()
    ]
    call = {"type": "UPDATE_QUOTA", "update_quota": {"quota_configs": configs}}
    return json.dumps(call, indent=2) + "\n"


def _text(text: str) -> str:
    # TOML basic strings have the escapes of JSON.
    return json.dumps(text)
