"""Two tiers of tests: `make test` takes minutes, `make test-all` also runs slow tests.

A test of the second tier has the marker `long`. `long`, `some`, `seeds` and `examples` move some
of the parameters or examples of a test there.
"""

import os
from collections.abc import Callable, Collection, Iterable
from itertools import cycle, product

import pytest
from hypothesis import settings

EVERYTHING = os.environ.get("HYPOTHESIS_PROFILE", "quick") != "quick"
"""Whether Hypothesis plays the second tier's number of examples."""


def examples(quick: int, everything: int) -> settings:
    """Settings for a property whose examples take longer than those of others."""
    return settings(max_examples=everything if EVERYTHING else quick)


def long(*values: object) -> list:
    """Parameters of a test that belong to the second tier."""
    return [pytest.param(value, marks=pytest.mark.long) for value in values]


def some(values: Iterable, quick: Collection) -> list:
    """Parameters of a test; those not in `quick` belong to the second tier."""
    return [
        pytest.param(
            *(each if isinstance(each, tuple) else (each,)),
            marks=() if each in quick else pytest.mark.long,
        )
        for each in values
    ]


def in_turn(
    names: Iterable, modes: Iterable, make: Callable[..., object] = lambda *pair: pair
) -> list:
    """Parameters `make(name, mode)`: in the first tier one mode for each name, modes in turn."""
    quick = [make(*pair) for pair in zip(names, cycle(modes), strict=False)]
    return some([make(*pair) for pair in product(names, modes)], quick)


def seeds(quick: int, everything: int) -> list:
    """Parameters 0, 1, ... of a test; those from `quick` on belong to the second tier."""
    return [*range(quick), *long(*range(quick, everything))]
