"""Long random histories through our allocator, and through a model of the built-in one's rules.

Both are told the same, and after every cycle both must have made the same offers. Where they did
not, the history is made as short as it goes, and printed with the numbers that it comes from.
`HYPOTHESIS_PROFILE=nightly` plays fifty times as many histories.
"""

from collections.abc import Mapping

from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st

from tests.differential.history import SPECIAL_VERBS, VERBS, History

SEEDS = st.integers(0, 2**32 - 1)
Happening = list[tuple[str, int]]

# New histories every time, in continuous integration, too. Shorter ones are found here: Hypothesis
# would go on to simplify numbers that mean nothing.
fresh = settings(derandomize=False, phases=[Phase.explicit, Phase.reuse, Phase.generate])


def happenings(verbs: Mapping[str, int]) -> st.SearchStrategy[Happening]:
    often = [verb for verb, times in verbs.items() for _ in range(times)]
    return st.lists(st.tuples(st.sampled_from(often), SEEDS), min_size=30, max_size=60)


def play(seed: int, happening: Happening, *, special: bool) -> tuple[History, Exception | None]:
    """Play a history as far as it goes."""
    history = History(seed, special=special)
    try:
        for verb, number in happening:
            history.play(verb, number)
    except Exception as error:  # noqa: BLE001 - whatever it is, a shorter history may show it.
        return history, error
    return history, None


def shortest(seed: int, happening: Happening, *, special: bool) -> Happening:
    """Leave out whatever is not needed for a failure, in ever smaller pieces."""
    piece = len(happening)
    while piece := piece // 2:
        start = 0
        while start < len(happening):
            shorter = happening[:start] + happening[start + piece :]
            if play(seed, shorter, special=special)[1] is None:
                start += piece
            else:
                happening = shorter
    return happening


def agree(seed: int, happening: Happening, *, special: bool) -> None:
    if play(seed, happening, special=special)[1] is None:
        return
    happening = shortest(seed, happening, special=special)
    history, error = play(seed, happening, special=special)
    note(f"seed {seed}, {happening}")
    note("\n".join(history.told))
    assert error is not None
    raise error


@fresh
@given(seed=SEEDS, happening=happenings(VERBS))
def test_plain_resources_are_offered_as_the_rules_say(seed, happening):
    agree(seed, happening, special=False)


@fresh
@given(seed=SEEDS, happening=happenings(SPECIAL_VERBS))
def test_all_kinds_are_offered_as_the_rules_say_and_quotas_allow(seed, happening):
    agree(seed, happening, special=True)
