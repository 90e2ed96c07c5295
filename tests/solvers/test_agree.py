"""Some of the random instances of `agree.py`, which plays thousands of them."""

import pytest

from tests.solvers import agree


@pytest.mark.parametrize("name", list(agree.TRIALS))
def test_solvers_agree_with_their_oracles(name: str) -> None:
    found = agree.run(name, instances=15, seed=1)
    assert found[agree.WRONG] == 0
    assert found[agree.AGREES] >= 12


def test_a_wrong_answer_is_found(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr(agree, "simplex_cost", lambda _network: 10**12)
    found = agree.run("min_cost_flow, networkx", instances=5, seed=1)
    assert found[agree.WRONG] == 5
    assert "instance 4" in capsys.readouterr().err
