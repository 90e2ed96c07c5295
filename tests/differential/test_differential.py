"""Long random histories for our allocator and for a model of the built-in one's rules.

Both receive the same events, and must have equal books after each. With the built-in's policy both
must make the same offers in every cycle. Offers of another policy must be permitted, and no policy
may leave resources free that a client may be offered.
The second tier plays 100 of each; `HYPOTHESIS_PROFILE=nightly` plays 3000.
"""

from functools import partial

from hypothesis import example, given

from tests.differential.history import POLICY_VERBS, SPECIAL_VERBS, VERBS, History
from tests.differential.playing import SEEDS, agree, few, happenings


@few
@given(seed=SEEDS, happening=happenings(VERBS))
def test_plain_resources_are_offered_as_the_rules_say(seed, happening):
    agree(partial(History, seed, special=False), happening)


@few
@given(seed=SEEDS, happening=happenings(SPECIAL_VERBS))
def test_all_kinds_are_offered_as_the_rules_say_and_quotas_allow(seed, happening):
    agree(partial(History, seed, special=True), happening)


@few
@given(seed=SEEDS, happening=happenings(POLICY_VERBS))
@example(  # the policy that is drawn is the built-in one's, and a framework states a gang
    seed=13354,
    happening=[("decline_and_cycle", 566), ("answer_and_cycle", 836), ("answer_and_cycle", 2294)],
)
def test_offers_of_every_policy_are_allowed_and_leave_nothing(seed, happening):
    agree(partial(History, seed, special=True, any_policy=True), happening)
