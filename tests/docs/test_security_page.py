"""The page on security: each statement names an existing test that holds it."""

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "explanation" / "security.md"

_STATEMENT = re.compile(r"(?ms)^- (.*?)(?=^- |^\||^#|^$)")
_HELD_BY = re.compile(r"\[held by ([^\]]+)\]\s*$")
_NAME = re.compile(r"`([^`]+)`")


@cache
def named_in_cpp() -> frozenset[str]:
    """All tests of the module, as Suite.Name."""
    files = (ROOT / "mesos-module" / "tests").rglob("*.cpp")
    found = (re.findall(r"TEST(?:_[FP])?\((\w+),\s*(\w+)\)", each.read_text()) for each in files)
    return frozenset(".".join(pair) for pairs in found for pair in pairs)


def exists(name: str) -> bool:
    """Whether there is such a test: ``file::function``, ``Suite.Name`` in C++, or a transcript."""
    path, colons, function = name.partition("::")
    if name.endswith(".txt"):
        return (ROOT / name).is_file()
    if not colons:
        return name in named_in_cpp()
    file = ROOT / path
    return file.is_file() and f"def {function}(" in file.read_text("utf-8")


def statements() -> list[str]:
    return [" ".join(each.split()) for each in _STATEMENT.findall(PAGE.read_text("utf-8"))]


def test_each_statement_names_a_test_that_is_there():
    found = statements()
    assert len(found) > 20
    for statement in found:
        held = _HELD_BY.search(statement)
        assert held, f"no test holds: {statement}"
        names = _NAME.findall(held[1])
        assert names, statement
        assert [each for each in names if not exists(each)] == [], statement
