"""The page "how far one sidecar goes": its estimates for larger clusters follow from figures."""

import json
from pathlib import Path

import pytest

from tests.docs import docs_scripts

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def scaling():
    return docs_scripts.load("scaling")


def rows(cost) -> list[dict[str, float]]:
    return [
        {"agents": agents, "frameworks": frameworks, "ms": cost(agents, frameworks)}
        for agents in (10, 1_000, 20_000)
        for frameworks in (10, 500, 6_000)
    ]


def test_a_cost_that_is_such_a_sum_is_found_again(scaling):
    found = scaling.law(rows(lambda a, f: 3 + 0.02 * a + 0.5 * f + 1e-5 * a * f), "ms")
    assert found[:4] == pytest.approx((3, 0.02, 0.5, 1e-5), rel=1e-6)
    assert found.error < 1e-6
    assert found.at(100_000, 2_000) == pytest.approx(5_003)
    assert found.agents_for(5_003, 2_000) == pytest.approx(100_000)


def test_a_poor_fit_has_a_large_error(scaling):
    found = scaling.law(rows(lambda a, _: a**2), "ms")
    assert found.error > 0.5
    assert min(found[:4]) >= 0


def test_powers_are_those_at_the_largest_sizes(scaling):
    some = rows(lambda a, f: 100 + a**2 * f**0.5)
    assert scaling.exponent(some, "ms", "agents") == pytest.approx(2, abs=0.01)
    assert scaling.exponent(some, "ms", "frameworks") == pytest.approx(0.5, abs=0.01)


def test_the_page_says_where_it_gives_out(scaling, tmp_path):
    keys = [cost.key for cost in scaling.COSTS]
    sizes = [(10, 10), (1_000, 10), (1_000, 500), (20_000, 10), (20_000, 500)]
    kept = {
        "processor": "a processor",
        "rows": [
            {"agents": a, "frameworks": f, **dict.fromkeys(keys, 10 + a / 100)} for a, f in sizes
        ],
        "module": [{"agents": 1_000, "frameworks": 100, "ours_s": 0.05, "built_in_s": 0.2}],
    }
    (tmp_path / "kept.json").write_text(json.dumps(kept), encoding="utf-8")
    page = scaling.page(tmp_path / "kept.json")
    # A hundredth of a millisecond for each agent above ten: 99,000 agents in a second.
    assert "takes the interval of 1 s | 99,000 | 99,000 | 99,000 |" in page
    assert "| 1,000 x 100 | 50.0 ms | 200 ms | 0.25 | 20,000 |" in page
    # Half the agents, half the time.
    assert "| 2 | 100,000 x 5,000 | 1,010 ms | 1,010 ms |" in page
