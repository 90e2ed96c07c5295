"""Long random histories through our allocator, and through a model of the built-in one's rules.

Both are told the same, and after every event both must have the same books. After every cycle of
the built-in's policy both must have made the same offers. What another policy offers must be
allowed, and no policy may leave free what somebody may have.
`HYPOTHESIS_PROFILE=nightly` plays fifty times as many histories.
"""

from functools import partial

from hypothesis import given

from tests.differential.history import POLICY_VERBS, SPECIAL_VERBS, VERBS, History
from tests.differential.playing import SEEDS, agree, fresh, happenings


@fresh
@given(seed=SEEDS, happening=happenings(VERBS))
def test_plain_resources_are_offered_as_the_rules_say(seed, happening):
    agree(partial(History, seed, special=False), happening)


@fresh
@given(seed=SEEDS, happening=happenings(SPECIAL_VERBS))
def test_all_kinds_are_offered_as_the_rules_say_and_quotas_allow(seed, happening):
    agree(partial(History, seed, special=True), happening)


@fresh
@given(seed=SEEDS, happening=happenings(POLICY_VERBS))
def test_offers_of_every_policy_are_allowed_and_leave_nothing(seed, happening):
    agree(partial(History, seed, special=True, any_policy=True), happening)
