"""Bonald and Roberts, Performance Evaluation 2014, section 3: service rates in dynamic traffic."""

import numpy as np
import pytest

from laboratory.papers.bonald import traffic as paper

DRF, PF = "drf", "pf"


def rates(policy: str, profile: paper.Profile, ratio: float, load: float) -> np.ndarray:
    """Service rates where resource 1 has this load and ``rho1 = ratio * rho2``."""
    return paper.service_rates(policy, profile, paper.demand_at(load, profile, (ratio, 1.0)))


@pytest.mark.long
def test_one_class_is_processor_sharing() -> None:
    """'For a single resource, the service rate would in fact be 1 - rho for both.'"""
    for policy in (DRF, PF):
        for load in (0.2, 0.5, 0.8):
            alone = paper.service_rates(policy, ((1, 1), (1, 1)), (load / 2, load / 2))
            np.testing.assert_allclose(alone, 1 - load, rtol=1e-3)


@pytest.mark.long
@pytest.mark.parametrize("load", paper.LOADS)
def test_figure_1a_pf_outperforms_drf_for_both_classes(load: float) -> None:
    drf, pf = rates(DRF, paper.FIG_1, 1, load), rates(PF, paper.FIG_1, 1, load)
    assert drf[0] == pytest.approx(drf[1])
    assert pf[0] == pytest.approx(pf[1])
    assert pf[0] > drf[0]


@pytest.mark.long
def test_figure_1a_especially_at_high_load() -> None:
    gains = [
        rates(PF, paper.FIG_1, 1, load)[0] / rates(DRF, paper.FIG_1, 1, load)[0]
        for load in paper.LOADS
    ]
    assert gains == sorted(gains)
    assert gains[-1] > 1.5


@pytest.mark.long
@pytest.mark.parametrize("load", paper.LOADS)
def test_figure_1b_only_the_class_of_the_idle_resource_gains(load: float) -> None:
    """'Significantly higher' for class 2; for class 1 'practically the same'."""
    drf, pf = rates(DRF, paper.FIG_1, 3, load), rates(PF, paper.FIG_1, 3, load)
    assert pf[1] > drf[1] * (1.02 if load < 0.5 else 1.2)
    assert pf[0] == pytest.approx(drf[0], rel=0.01)


@pytest.mark.long
@pytest.mark.parametrize("ratio", [1, 3])
@pytest.mark.parametrize("load", paper.LOADS)
def test_figure_2_class_2_gains_at_a_slight_cost_of_class_1(ratio: float, load: float) -> None:
    drf, pf = rates(DRF, paper.FIG_2, ratio, load), rates(PF, paper.FIG_2, ratio, load)
    assert pf[1] > 1.05 * drf[1]
    assert 0.95 * drf[0] < pf[0] < drf[0]


@pytest.mark.long
def test_heavy_load_of_the_busy_resource_is_processor_sharing() -> None:
    """'gamma1 of PF is about 1 - rho', and under DRF so are both classes' rates."""
    drf, pf = rates(DRF, paper.FIG_1, 3, 0.9), rates(PF, paper.FIG_1, 3, 0.9)
    assert pf[0] == pytest.approx(0.1, rel=0.03)
    assert drf[0] == pytest.approx(0.1, rel=0.05)
    assert drf[1] == pytest.approx(0.1, rel=0.35)
    assert pf[1] > 4 * drf[1]


def derived_light_traffic(policy: str, profile: paper.Profile) -> np.ndarray:
    """The coefficients by hand, (2, 2).

    At most two jobs matter. With phi the allocation to one job of each class, the balance of the
    states (0, 0), (1, 0), (0, 1) and (1, 1) gives ``2 (1 - phi[k]) / (phi[0] + phi[1])`` for the
    other class, and two jobs of the same class halve each other's rate: 1.
    """
    phi = np.array(paper.allocation(policy, profile, (1, 1)))
    first, second = 2 * (1 - phi) / phi.sum()
    return np.array([[1, first], [second, 1]])


PROFILES = [*paper.LIGHT.values(), paper.FIG_1]


@pytest.mark.parametrize("profile", PROFILES)
def test_light_traffic_under_drf_as_printed(profile: paper.Profile) -> None:
    """1 - rho1 - beta rho2 and 1 - beta rho1 - rho2."""
    printed = paper.printed_light_traffic(DRF, profile)
    np.testing.assert_allclose(paper.light_traffic(DRF, profile), printed, atol=1e-3)
    np.testing.assert_allclose(derived_light_traffic(DRF, profile), printed, atol=1e-9)


@pytest.mark.parametrize("profile", PROFILES)
def test_light_traffic_under_pf_as_derived(profile: paper.Profile) -> None:
    derived = derived_light_traffic(PF, profile)
    np.testing.assert_allclose(paper.light_traffic(PF, profile), derived, atol=1e-3)


@pytest.mark.parametrize("profile", list(paper.LIGHT.values()))
def test_light_traffic_under_pf_is_not_as_printed_but_its_conclusion_stands(profile) -> None:
    """Printed: class 1 as under DRF. In the model it is slowed more, and class 2 less."""
    pf, drf = derived_light_traffic(PF, profile), derived_light_traffic(DRF, profile)
    assert np.abs(pf - paper.printed_light_traffic(PF, profile)).max() > 0.02
    assert pf[1, 0] < drf[1, 0]
    assert pf[0, 1] > drf[0, 1]


@pytest.mark.long
def test_heavy_traffic_is_as_derived_and_not_as_printed() -> None:
    """(1 - rho) / beta: 0.2 at 0.9; printed is (1 - rho) / alpha, which is 1."""
    report = paper.heavy_traffic()
    assert report.holds
    assert [row.name for row in report.rows if row.differs] == [
        "PF, class 2: (1 - rho) / alpha, as printed"
    ]
    derived = report.row("PF, class 2: (1 - rho) / beta, as derived")
    assert derived.cells[0].computed == pytest.approx(0.193, abs=5e-4)


def test_more_jobs_do_not_change_the_rates() -> None:
    """The bound on the number of jobs is high enough at the highest loads shown."""
    demand = paper.demand_at(0.8, paper.FIG_1, (1.0, 1.0))
    few = paper.service_rates(DRF, paper.FIG_1, demand)
    np.testing.assert_allclose(few, paper.service_rates(DRF, paper.FIG_1, demand, 80), atol=1e-4)


@pytest.mark.long
def test_the_report_explains_every_difference() -> None:
    report = paper.figures()
    assert report.holds
    assert [row.name for row in report.rows if not row.agrees] == [
        f"{name}, PF" for name in paper.LIGHT
    ]
