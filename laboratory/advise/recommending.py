"""The recommendation and its reasons: a pure function of the figures.

A change is advised only if tasks clearly finish earlier over all roles, and not at the expense of a
role that had no more than its fair share. Of equally good candidates the one with the fewest
changed settings is advised. Otherwise the advice is to keep the policy.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from allocator.core import PolicySpec
from laboratory.advise.bottlenecks import Bottleneck
from laboratory.advise.comparing import CLOSE, Comparison, MeasureChange, Verdict, judge
from laboratory.advise.limits import Bound, Finding, Sort
from laboratory.advise.playing import Candidate, in_words

WORTH = 0.05
"""Minimum gain for a change: how much earlier tasks finish, as a fraction."""

WORTH_S = 1.0
"""The same in seconds; both must be reached."""

POINTS = 0.02
"""A role whose shortfall grows by more than this fraction of its fair share is harmed."""


@dataclass(frozen=True, slots=True)
class Advice:
    """The recommendation.

    chosen: the policy to put in force; None: keep the current one.
    headline: in one sentence.
    reasons: arguments for and against.
    also: further actions: quotas, constraints.
    """

    chosen: Candidate | None
    headline: str
    reasons: tuple[str, ...]
    also: tuple[str, ...]

    @property
    def spec(self) -> PolicySpec | None:
        """The policy to put in force, without the past."""
        return None if self.chosen is None else self.chosen.spec

    @property
    def keeps(self) -> bool:
        """Whether there is nothing to do."""
        return self.chosen is None and not self.also


def recommend(
    now: PolicySpec,
    candidates: Mapping[str, Candidate],
    compared: Sequence[Comparison],
    bounds: Sequence[Bound],
    bottlenecks: Sequence[Bottleneck],
    quotas: Comparison | None = None,
) -> Advice:
    """Recommend a policy, and further changes.

    candidates: by the names in `compared`, those with the recorded quotas.
    quotas: the policy in force with the quotas advised by `bounds`.
    """
    also = [*_quota_advice(bounds, quotas), *_bottleneck_advice(bottlenecks)]
    good = [each for each in compared if each.name in candidates and _is_better(each)]
    harming = [each for each in good if harmed(each)]
    good = [each for each in good if not harmed(each)]
    if not good:
        headline = f"Keep what you have: {in_words(now)}."
        if also:
            headline = f"Keep the policy, {in_words(now)}, and make the changes named below."
        return Advice(None, headline, tuple(_why_not(compared, harming)), tuple(also))
    best = min(good, key=lambda each: each.stay.by.mean)
    alike = [each for each in good if _as_good(each, best)]
    order = list(candidates)
    chosen = min(
        alike,
        key=lambda each: (candidates[each.name].changes(now), order.index(each.name)),
    )
    reasons = [*_why(chosen), *_others(chosen, alike)]
    headline = f"Change the policy from {in_words(now)} to {chosen.name}."
    return Advice(candidates[chosen.name], headline, tuple(reasons), tuple(also))


def _is_better(each: Comparison) -> bool:
    """Whether tasks clearly finish earlier overall."""
    return (
        each.stay.verdict is Verdict.LESS
        and each.stay.by.mean <= -WORTH
        and each.stay_before_s - each.stay_s >= WORTH_S
        and each.never_began <= each.never_began_before
    )


def harmed(each: Comparison) -> list[str]:
    """Find the roles that are harmed: tasks finish later, and the share is less fair."""
    return [
        role
        for role, change in each.roles.items()
        if change.stay.verdict is Verdict.MORE
        and change.stay.by.mean > WORTH
        and change.after.short - change.before.short > POINTS
    ]


def _as_good(each: Comparison, best: Comparison) -> bool:
    """Whether a candidate, paired by day and seed, is not significantly worse than the best."""
    between = judge([one - other for one, other in zip(each.stays, best.stays, strict=True)])
    return between.verdict is not Verdict.MORE


def _why(chosen: Comparison) -> list[str]:
    before, after = chosen.wait_before_s, chosen.wait_s
    text = (
        f"Over all roles tasks are done {percent(chosen.stay)} earlier than under the policy in"
        f" force; on average they wait {after:.1f} s instead of {before:.1f} s."
    )
    found = [text]
    if gains := chosen.gains():
        told = ", ".join(_gain(role, chosen) for role in gains[:5])
        found.append(f"Roles that gain: {told}{_more(gains, 5)}.")
    loses = chosen.loses()
    if loses:
        told = ", ".join(_gain(role, chosen) for role in loses[:5])
        found.append(
            f"Roles that lose: {told}{_more(loses, 5)}; none by more than {WORTH:.0%} while also"
            " moving further from its fair share."
        )
    else:
        found.append("No role loses by more than chance explains.")
    if unsure := [role for role, each in chosen.roles.items() if _may_lose(each.stay)]:
        found.append(
            f"The effect on {few(unsure)} is uncertain: there were too few runs to tell whether its"
            f" tasks are done more than {WORTH:.0%} later. Give more days or more --seeds."
        )
    return found


def _may_lose(change: MeasureChange) -> bool:
    """Whether a loss is likely, but possibly due to chance."""
    return change.verdict is Verdict.NOISE and change.by.mean > WORTH


def _gain(role: str, chosen: Comparison) -> str:
    change = chosen.roles[role]
    return f"{role} (waits {change.after.wait_s:.1f} s instead of {change.before.wait_s:.1f} s)"


def _more(names: Sequence[str], shown: int) -> str:
    return f" and {len(names) - shown} more" if len(names) > shown else ""


def _others(chosen: Comparison, alike: Sequence[Comparison]) -> list[str]:
    others = [each.name for each in alike if each is not chosen]
    if not others:
        return []
    text = f"As good, or different by chance only: {few(others)}."
    return [f"{text} Of these, {chosen.name} changes the fewest settings."]


def _why_not(compared: Sequence[Comparison], harming: Sequence[Comparison]) -> list[str]:
    """Explain why no change is worthwhile."""
    found = []
    if not any(each.wait_before_s >= WORTH_S for each in compared):
        waits = max((each.wait_before_s for each in compared), default=0.0)
        found.append(f"Tasks now wait {waits:.2f} s on average: there is nothing to gain.")
    for each in harming[:3]:
        who = ", ".join(harmed(each))
        found.append(
            f"{each.name} would have tasks done {percent(each.stay)} earlier, but at the expense of"
            f" {who}, further from the fair share than now."
        )
    rest = [each for each in compared if each not in harming]
    for verdict, said in (
        (Verdict.NOISE, "The differences under {} are noise: they may be zero or of either sign."),
        (Verdict.SAME, f"Under {{}} tasks are done within {CLOSE:.0%} of when they are now."),
        (Verdict.MORE, "Under {} tasks are done later."),
        (
            Verdict.LESS,
            f"Under {{}} tasks are done earlier, but by less than {WORTH:.0%} or {WORTH_S:.0f} s.",
        ),
    ):
        if names := [each.name for each in rest if each.stay.verdict is verdict]:
            found.append(said.format(few(names)))
    return found


def _quota_advice(bounds: Sequence[Bound], quotas: Comparison | None) -> list[str]:
    """Advice on quotas: guarantees that make others wait, and limits that cause waits."""
    found = []
    for bound in bounds:
        if bound.sort is Sort.GUARANTEE and bound.blocks and bound.better is not None:
            found.append(
                f"The guarantee of {amount(bound.amount, bound.resource)} for {bound.role} is too"
                f" large: it never used more than {amount(bound.peak, bound.resource)}, and others"
                f" waited for the unused part in {bound.in_way:.0%} of the time in which they"
                f" waited. {amount(bound.better, bound.resource)} would do."
            )
        elif bound.sort is Sort.LIMIT and bound.finding is Finding.ALWAYS:
            found.append(
                f"The limit of {amount(bound.amount, bound.resource)} for {bound.role} is always in"
                f" the way: in {bound.in_way:.0%} of the time in which the role waited, the"
                " resources were free. Raise it, unless that is its purpose."
            )
    if quotas is not None:
        text = "With these smaller guarantees tasks are not done earlier in the runs played."
        if quotas.stay.verdict is Verdict.LESS:
            text = (
                f"With these smaller guarantees tasks are done {percent(quotas.stay)} earlier, over"
                f" all roles; they wait {quotas.wait_s:.1f} s instead of"
                f" {quotas.wait_before_s:.1f} s."
            )
        if loses := quotas.loses():
            text += f" Those of {few(loses)} are done later."
        found.append(text)
    return found


def _bottleneck_advice(bottlenecks: Sequence[Bottleneck]) -> list[str]:
    found = []
    for each in bottlenecks[:3]:
        agents = few(each.agents)
        who = few(sorted(each.frameworks))
        found.append(
            f"Constraints are a bottleneck: {who} (of {few(sorted(each.roles))}) may use no agents"
            f" but {agents}, {len(each.agents)} of {each.of}. In {each.part:.0%} of the time"
            f" {each.waiting:.0f} of their tasks waited there, on average, while {each.free:.0%} of"
            " the other agents was free. Relax their constraints, or add agents of this kind; no"
            " policy helps."
        )
    return found


def few(names: Sequence[str], shown: int = 4) -> str:
    return ", ".join(names[:shown]) + _more(names, shown)


def amount(thousandths: float, resource: str) -> str:
    """Write an amount in Mesos's form."""
    return f"{resource}:{thousandths / 1000:g}"


def percent(change: MeasureChange) -> str:
    """Write the magnitude of a difference, with its interval."""
    if np.isnan(change.by.half):
        return f"{abs(change.by.mean):.0%}"
    ends = sorted((abs(change.low), abs(change.high)))
    return f"{abs(change.by.mean):.0%} ({ends[0]:.0%} to {ends[1]:.0%})"
