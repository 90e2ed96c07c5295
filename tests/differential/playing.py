"""Plays histories; shortens a failing one as far as possible, and prints it."""

from collections.abc import Callable, Mapping

from hypothesis import Phase, note, settings
from hypothesis import strategies as st

from tests.differential.history import History
from tests.tiers import EVERYTHING

SEEDS = st.integers(0, 2**32 - 1)
Happening = list[tuple[str, int]]

# Every run plays new histories, also in continuous integration. A failing one is shortened here:
# Hypothesis would go on to simplify its numbers, which are mere seeds.
fresh = settings(derandomize=False, phases=[Phase.explicit, Phase.reuse, Phase.generate])
few = fresh if EVERYTHING else settings(fresh, max_examples=8)


def happenings(verbs: Mapping[str, int]) -> st.SearchStrategy[Happening]:
    often = [verb for verb, times in verbs.items() for _ in range(times)]
    return st.lists(st.tuples(st.sampled_from(often), SEEDS), min_size=30, max_size=60)


def play(
    begin: Callable[[], History], happening: Happening
) -> tuple[History | None, Exception | None]:
    """Play a history up to its first failure."""
    history = None
    try:
        history = begin()
        for verb, number in happening:
            history.play(verb, number)
    except Exception as error:  # noqa: BLE001 - whatever it is, a shorter history may show it.
        return history, error
    return history, None


def shortest(begin: Callable[[], History], happening: Happening) -> Happening:
    """Leave out events that a failure does not need, in ever smaller pieces."""
    piece = len(happening)
    while piece := piece // 2:
        start = 0
        while start < len(happening):
            shorter = happening[:start] + happening[start + piece :]
            if play(begin, shorter)[1] is None:
                start += piece
            else:
                happening = shorter
    return happening


def agree(begin: Callable[[], History], happening: Happening) -> None:
    """Play a history that must not fail."""
    if play(begin, happening)[1] is None:
        return
    happening = shortest(begin, happening)
    history, error = play(begin, happening)
    note(f"{happening}")
    note("\n".join(history.told if history else ["it did not begin"]))
    assert error is not None
    raise error
