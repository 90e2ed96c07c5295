"""The simulation finds no violation, is reproducible, and finds planted defects."""

from pathlib import Path

import pytest

from tests.simulation.run import play
from tests.simulation.simulation import Faults, Simulation

SEEDS = range(8)
FOUND: tuple[int, ...] = ()
"""Seeds that once found a defect."""
ACTS = 4000

RUNS = [
    (8, ACTS // 2),
    *((seed, ACTS) for seed in FOUND),
    *(pytest.param(seed, ACTS, marks=pytest.mark.long) for seed in SEEDS),
]


@pytest.mark.parametrize(("seed", "acts"), RUNS)
def test_no_fault_breaks_the_books(seed: int, acts: int, brain_library: Path) -> None:
    _, wrong, events, faults, _ = play(seed, acts, brain_library)
    assert not wrong, wrong
    assert events > 2 * acts
    assert faults > acts / 1000


def test_a_seed_repeats_exactly(brain_library: Path) -> None:
    first, again, other = (play(seed, 250, brain_library)[4] for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_a_release_that_is_lost_is_found(brain_library: Path) -> None:
    quiet = Faults.none()
    quiet.release_lost = 0.1
    simulation = Simulation(3, brain_library, quiet)
    with pytest.raises(AssertionError):
        simulation.run(1000)
