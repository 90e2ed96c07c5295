"""Every seed input and every finding of fuzzing is accepted, or refused with a named error."""

from pathlib import Path

import pytest

from tests.fuzz import seed_corpus
from tests.fuzz.targets import TARGETS

CORPUS = Path(__file__).parent / "corpus"
BYTES_MAX = 64 * 1024


def inputs(name: str) -> list[Path]:
    return sorted((CORPUS / name).iterdir())


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_the_corpus_raises_nothing(name):
    assert inputs(name)
    for path in inputs(name):
        TARGETS[name](path.read_bytes())


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_some_of_the_corpus_is_taken(name):
    """Otherwise a target would refuse all input early, and the code behind would not be fuzzed."""
    assert any(TARGETS[name](path.read_bytes()) for path in inputs(name))


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_seeds_of_fuzzing_are_up_to_date(name):
    for each, data in getattr(seed_corpus, name)():
        assert (CORPUS / name / each).read_bytes() == data


def test_the_corpus_is_small():
    assert sum(path.stat().st_size for path in CORPUS.rglob("*") if path.is_file()) < BYTES_MAX


def test_a_target_lets_other_errors_through(monkeypatch):
    """A defect behind the first checks is found."""

    def broken(*_arguments: object) -> None:
        raise KeyError("planted")

    monkeypatch.setattr("tests.fuzz.targets.read_swim", broken)
    with pytest.raises(KeyError, match="planted"):
        TARGETS["traces"](b"\x02anything")
