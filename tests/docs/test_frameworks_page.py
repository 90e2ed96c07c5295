"""The statements of the page about third-party frameworks follow from the stored rows."""

import json

import pytest

from allocator.policies import MODES, POLICIES
from tests.cluster.live import PACKAGES
from tests.docs import docs_scripts


@pytest.fixture(scope="module")
def frameworks():
    return docs_scripts.load("frameworks")


def counts(finished, offers, otherwise=0, subscribed=0):
    return {
        "finished": finished,
        "otherwise": otherwise,
        "offers": offers,
        "accepted": finished,
        "declined": offers - finished,
        "subscribed": subscribed,
    }


def test_sums_and_offers_per_task(frameworks, tmp_path):
    rows = [
        {
            "policy": policy,
            "mode": "oblivious",
            "alive": {"pymesos": counts(2, 5)},
            "dead": {"pymesos": counts(4, 6, otherwise=1, subscribed=3)},
        }
        for policy in ("drf", "tsf")
    ]
    kept = tmp_path / "kept.jsonl"
    kept.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    page = frameworks.page(kept)
    assert "until each framework has finished 2 tasks" in " ".join(page.split())
    assert "| pymesos 0.3.15 | 2 | 4 | 8 | 2 | 2.5 | 1.5 | 6 |" in page
    assert "| `tsf`, oblivious | 2 / 2.5; 4 / 1.5 |" in page
    assert "python -m tests.cluster.live pymesos --policies drf tsf >> $KEPT" in page
    assert "TensorFlow" not in page


def test_the_page_knows_each_framework_that_runs(frameworks):
    assert frameworks.FRAMEWORKS.keys() == PACKAGES.keys()


@pytest.mark.parametrize("name", PACKAGES)
def test_each_policy_was_run_in_each_mode(frameworks, name):
    rows = [json.loads(line) for line in frameworks.KEPT.read_text("utf-8").splitlines()]
    ways = [(row["policy"], row["mode"]) for row in rows if name in row["alive"]]
    assert ways == [(policy, mode) for policy in POLICIES for mode in MODES]
