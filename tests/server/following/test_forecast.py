"""The forecast of `policy set --dry-run` equals the later decisions."""

import numpy as np
import pytest

from allocator.core import (
    AddAgent,
    AddFramework,
    AgentInfo,
    Define,
    FrameworkInfo,
    Kind,
    Options,
    PolicySpec,
    SetDemand,
    SetPolicy,
)
from allocator.server.following import fair_shares
from allocator.server.following.books import FollowedBooks
from allocator.server.reports import report
from tests.server.in_process import books_of

GIB = 1_024_000
CLUSTER = (
    Options(),
    Define({0: Kind("cpus"), 1: Kind("mem")}, {1: "eng", 2: "ops"}),
    AddAgent(1, AgentInfo("a1"), {0: 9000, 1: 18 * GIB}),
    AddAgent(2, AgentInfo("a2"), {0: 3000, 1: 30 * GIB}),
    AddFramework(1, FrameworkInfo("id-1", name="pi"), (1,)),
    AddFramework(2, FrameworkInfo("id-2", name="count"), (2,)),
    SetDemand("eng", "", {"cpus": 1000, "mem": GIB}),
    SetDemand("ops", "", {"cpus": 1000, "mem": 4 * GIB}),
)
NOW = PolicySpec("drf", mode="oblivious")
THEN = PolicySpec("ps-dsf", mode="characterised")


@pytest.fixture
def books():
    found = books_of()
    for event in (*CLUSTER, SetPolicy(NOW)):
        found.allocator.step(event)
    return found


def offered(books: FollowedBooks, policy: PolicySpec) -> dict[str, tuple[float, int]]:
    """Set the policy, run a cycle, and return the offers."""
    books.allocator.step(SetPolicy(policy))
    decisions = books.allocator.allocate(0)
    shares = report.read(books.allocator)
    return {
        info.framework_id: (
            float(shares.offered_share[row]),
            int((decisions.framework == shares.clients.framework[row]).sum()),
        )
        for row, info in enumerate(shares.clients.info)
        if info
    }


@pytest.mark.parametrize("which", ["now", "then"])
def test_the_next_cycle_is_as_foreseen(books, which):
    found, unaffected = fair_shares.compare_policies(books, books.allocator.copied(), NOW, THEN)
    assert (len(found), unaffected) == (2, 0)
    foreseen = {
        each.framework_id: (
            getattr(each, f"offered_{which}"),
            getattr(each, f"agents_{which}"),
        )
        for each in found
    }
    assert foreseen == offered(books, NOW if which == "now" else THEN)


def test_asking_changes_nothing(books):
    before = report.read(books.allocator)
    copied = books.allocator.copied()
    first = fair_shares.compare_policies(books, copied, NOW, THEN)
    assert fair_shares.compare_policies(books, copied, NOW, THEN) == first
    after = report.read(books.allocator)
    assert after.policy == before.policy == NOW
    assert np.array_equal(after.clients.held, before.clients.held)


def test_the_end_is_what_each_policy_would_deal(books):
    copied = books.allocator.copied()
    found, _ = fair_shares.compare_policies(books, copied, NOW, THEN)
    dealt = fair_shares.deal(books, THEN, copied)
    pairs = zip(dealt.clients.info, dealt.share, strict=True)
    fair = {info.framework_id: share for info, share in pairs if info}
    assert {each.framework_id: each.fair_then for each in found} == fair


def test_a_policy_compared_with_itself_changes_no_framework(books):
    assert fair_shares.compare_policies(books, books.allocator.copied(), NOW, NOW) == ([], 2)
