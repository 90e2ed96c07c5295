"""Advice on synthetic days for which the right advice is known."""

from functools import cache, partial
from pathlib import Path

import pytest

from allocator.core import PolicySpec
from laboratory.advise.advising import AdviceReport, advise
from laboratory.advise.comparing import Verdict
from laboratory.advise.limits import Finding
from laboratory.advise.page import write
from laboratory.advise.reading import read_day
from laboratory.advise.words import quota_calls, to_paste
from laboratory.experiments.spread import spread
from tests.laboratory.advise import days

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

SEEDS = 3


@pytest.fixture(scope="module")
def advice(tmp_path_factory):
    """Gives the report of a day by its name."""
    directory = tmp_path_factory.mktemp("days")

    @cache
    def of(name: str) -> AdviceReport:
        path: Path = getattr(days, name)().write(directory / name)
        over = partial(spread, jobs=-1)
        report = advise([read_day(name, [path])], SEEDS, over, lambda _done, _total: None)
        write(directory / f"{name}.html", report)
        assert report.advice.headline in (directory / f"{name}.html").read_text()
        return report

    return of


def told(report: AdviceReport) -> str:
    return "\n".join([report.advice.headline, *report.advice.reasons, *report.advice.also])


def comes_near_to_what_was_recorded(report: AdviceReport) -> None:
    """A day with many waits varies by chance: the recorded one must be in the range of those
    played.

    Called by the test of each such day; otherwise another process might play all of it again.
    """
    (recorded,) = report.recorded
    waits_s = [run.figures.wait_s for run in report.base]
    # The moment within an interval of a second at which a task was wanted is unknown.
    near_s = max(0.15 * recorded.wait_s, 0.5)
    assert min(waits_s) - near_s <= recorded.wait_s <= max(waits_s) + near_s
    assert not any(run.figures.never_began for run in report.base)


def test_a_framework_that_keeps_whole_offers_is_offered_whole_tasks(advice):
    """Only another mode helps here, so the advice changes the mode and keeps the policy."""
    report = advice("one_greedy_framework")
    comes_near_to_what_was_recorded(report)
    assert report.advice.spec == PolicySpec("drf", mode="characterised"), told(report)
    chosen = next(each for each in report.compared if each.name == "drf characterised")
    assert chosen.gains() == ["modest"]
    assert "greedy" not in chosen.loses(), "it has as much memory as before"
    assert 'mode = "characterised"' in to_paste(report)
    assert not report.advice.also


def test_unequal_agents_are_served_by_a_policy_that_looks_at_them(advice):
    report = advice("unequal_agents")
    comes_near_to_what_was_recorded(report)
    spec = report.advice.spec
    assert spec is not None, told(report)
    looking = {"ps-dsf", "rps-dsf", "bf-drf", "ps-dsf-exact"}
    assert spec.name in looking or spec.selection in {"best_fit", "joint"}, told(report)
    chosen = report.compared[0]
    assert chosen.stay.verdict is Verdict.LESS
    assert not chosen.loses()


def test_a_quota_that_is_too_large_is_cut_down(advice):
    """No policy helps: the guarantee is held back under each."""
    report = advice("quota_too_large")
    comes_near_to_what_was_recorded(report)
    assert report.advice.spec is None, told(report)
    found = {bound.resource: bound for bound in report.bounds}
    assert set(found) == {"cpus", "mem"}
    # Production never ran more than four tasks of two CPUs and 4 GiB.
    assert found["cpus"].peak == 8_000
    assert found["cpus"].better == 9_000
    assert found["cpus"].finding in {Finding.SOMETIMES, Finding.ALWAYS}
    assert "guarantee of cpus:48 for production is too large" in told(report)
    assert report.quotas is not None
    assert report.quotas.stay.verdict is Verdict.LESS
    assert report.quotas.roles["production"].stay.verdict is Verdict.SAME
    assert '"value": 9.0' in quota_calls(report)


def test_constraints_that_overlap_are_named_with_the_agents_that_are_too_few(advice):
    report = advice("overlapping_constraints")
    assert report.advice.spec is None, told(report)
    worst = report.bottlenecks[0]
    assert worst.agents == ("both-1", "left-1", "right-1")
    assert worst.roles == {"left", "right"}
    assert worst.of == 10
    assert worst.free > 0.5
    assert "may use no agents but both-1, left-1, right-1, 3 of 10" in told(report)


def test_where_nothing_is_wrong_nothing_is_advised(advice):
    report = advice("nothing_wrong")
    comes_near_to_what_was_recorded(report)
    assert report.advice.keeps, told(report)
    assert report.advice.headline == "Keep what you have: drf characterised."
    assert report.bounds == ()
    assert report.bottlenecks == ()
    assert 'name = "drf"' in to_paste(report)
