"""Long random histories for our allocator and for a model of the built-in one's rules.

Both receive the same events, and must have equal books after each. With the built-in's policy both
must make the same offers in every cycle. Offers of another policy must be permitted, and no policy
may leave resources free that a client may be offered.
The second tier plays 100 of each; `HYPOTHESIS_PROFILE=nightly` plays 3000.
"""

from functools import partial

import pytest
from hypothesis import given, settings

from tests.differential.history import POLICY_VERBS, SPECIAL_VERBS, VERBS, History
from tests.differential.playing import SEEDS, Happening, agree, fresh, happenings

few = settings(fresh, max_examples=8)


def plain(seed: int, happening: Happening) -> None:
    agree(partial(History, seed, special=False), happening)


def special(seed: int, happening: Happening) -> None:
    agree(partial(History, seed, special=True), happening)


def any_policy(seed: int, happening: Happening) -> None:
    agree(partial(History, seed, special=True, any_policy=True), happening)


@few
@given(seed=SEEDS, happening=happenings(VERBS))
def test_plain_resources_are_offered_as_the_rules_say(seed, happening):
    plain(seed, happening)


@few
@given(seed=SEEDS, happening=happenings(SPECIAL_VERBS))
def test_all_kinds_are_offered_as_the_rules_say_and_quotas_allow(seed, happening):
    special(seed, happening)


@few
@given(seed=SEEDS, happening=happenings(POLICY_VERBS))
def test_offers_of_every_policy_are_allowed_and_leave_nothing(seed, happening):
    any_policy(seed, happening)


@pytest.mark.long
@fresh
@given(seed=SEEDS, happening=happenings(VERBS))
def test_plain_resources_in_many_histories(seed, happening):
    plain(seed, happening)


@pytest.mark.long
@fresh
@given(seed=SEEDS, happening=happenings(SPECIAL_VERBS))
def test_all_kinds_in_many_histories(seed, happening):
    special(seed, happening)


@pytest.mark.long
@fresh
@given(seed=SEEDS, happening=happenings(POLICY_VERBS))
def test_every_policy_in_many_histories(seed, happening):
    any_policy(seed, happening)
