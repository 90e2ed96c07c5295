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


def test_a_lost_event_is_found(brain_library: Path) -> None:
    quiet = Faults.none()
    quiet.event_lost = 0.02
    simulation = Simulation(3, brain_library, quiet)
    # Where an agent was lost, the link does not know it when a cycle names it.
    with pytest.raises((AssertionError, KeyError)):
        simulation.run(5000)
