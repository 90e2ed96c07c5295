"""The simulation finds nothing, repeats itself, and would find something if it were there."""

from pathlib import Path

import pytest

from tests.simulation.run import play
from tests.simulation.simulation import Faults, Simulation

SEEDS = range(8)
FOUND: tuple[int, ...] = ()
"""Seeds that found something once."""
ACTS = 4000


@pytest.mark.parametrize("seed", [*SEEDS, *FOUND])
def test_no_fault_breaks_the_books(seed: int, brain_library: Path) -> None:
    _, wrong, events, faults, _ = play(seed, ACTS, brain_library)
    assert not wrong, wrong
    assert events > 2 * ACTS
    assert faults > ACTS / 1000


def test_a_seed_repeats_exactly(brain_library: Path) -> None:
    assert play(1, 1000, brain_library)[4] == play(1, 1000, brain_library)[4]
    assert play(1, 1000, brain_library)[4] != play(2, 1000, brain_library)[4]


def test_a_release_that_is_lost_is_found(brain_library: Path) -> None:
    quiet = Faults.none()
    quiet.release_lost = 0.1
    simulation = Simulation(3, brain_library, quiet)
    with pytest.raises(AssertionError):
        simulation.run(5000)
