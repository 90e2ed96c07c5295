"""The table of Mesos's tests and their counterparts here.

Run ``python -m tests.conformance.table`` to write it.
"""

import ast
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.test_scenarios import SCENARIOS

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TABLE = HERE.parent / "conformance.md"

HEAD = """# Conformance

This page lists Mesos's own tests of its allocator, and bugs that it had. For each it names the test
in this repository that covers the same. `python -m tests.conformance.table` writes this page, and a
test fails if it is out of date.

There are three kinds:

- P: any allocator must do so.
- D: the built-in allocator does so, with its policy or its quotas.
- W: the test looks inside the built-in allocator.

Scenarios of kind P run with every policy. Those of kind D run with `drf`, hierarchical and
oblivious, or with every policy if the policy makes no difference. Names like `filters: ...` are
scripts in `tests/scenarios/mesos/`. The others are tests in `tests/conformance/`.

Where Mesos's names have its older word for an agent, they have Agent here.
"""


class Subject(NamedTuple):
    """One of Mesos's tests, or bugs."""

    section: str
    name: str
    kind: str
    shows: str


class Elsewhere(NamedTuple):
    """The test that covers it, if no scenario does, and why."""

    tests: tuple[str, ...]
    why: str


def read_subjects() -> list[Subject]:
    """Read all names, in order."""
    content = tomllib.loads((HERE / "tests.toml").read_text(encoding="utf-8"))
    return [
        Subject(section, name, kind, shows)
        for section, tests in content.items()
        for name, (kind, shows) in tests.items()
    ]


def read_elsewhere() -> dict[str, Elsewhere]:
    """Read what other tests cover or what does not apply, by name."""
    content = tomllib.loads((HERE / "elsewhere.toml").read_text(encoding="utf-8"))
    return {
        name: Elsewhere(tuple(entry["tests"]), entry["why"])
        for entry in content["entry"]
        for name in entry["names"]
    }


def read_differences() -> dict[str, str]:
    """Read the deliberate differences, by name."""
    content = tomllib.loads((HERE / "elsewhere.toml").read_text(encoding="utf-8"))
    return {name: entry["how"] for entry in content["differs"] for name in entry["names"]}


def scenarios() -> dict[str, list[str]]:
    """Find our scripts and tests by their marks, in heads and decorators."""
    found: dict[str, list[str]] = {}
    for file, scenario in SCENARIOS:
        for line in scenario.head:
            if line.startswith("Mesos: "):
                for name in line.removeprefix("Mesos: ").split(", "):
                    found.setdefault(name, []).append(f"{file.stem}: {scenario.title}")
    for path in sorted(HERE.glob("test_*.py")):
        for test in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(test, ast.FunctionDef):
                for name in _names(test):
                    found.setdefault(name, []).append(f"{path.stem}::{test.name}")
    return found


def _names(test: ast.FunctionDef) -> Iterator[str]:
    for decorator in test.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "mesos":
            yield from (ast.literal_eval(argument) for argument in decorator.args)


def render() -> str:
    """Write the table."""
    subjects, ours = read_subjects(), scenarios()
    elsewhere, differs = read_elsewhere(), read_differences()
    lines = [HEAD, _summary(subjects, ours, elsewhere)]
    section = ""
    for subject in subjects:
        if subject.section != section:
            section = subject.section
            lines += [
                "",
                f"## {section}",
                "",
                "| | kind | what it shows | here |",
                "|---|---|---|---|",
            ]
        here = "<br>".join(_here(subject.name, ours, elsewhere, differs))
        lines.append(f"| {subject.name} | {subject.kind} | {subject.shows} | {here} |")
    return "\n".join(lines) + "\n"


def _here(
    name: str,
    ours: Mapping[str, list[str]],
    elsewhere: Mapping[str, Elsewhere],
    differs: Mapping[str, str],
) -> Iterator[str]:
    for test in ours.get(name, ()):
        yield f"`{test}`"
    if name in differs:
        yield f"differs: {differs[name]}"
    if name in elsewhere:
        tests, why = elsewhere[name]
        yield from (f"`{test}`" for test in tests)
        if why:
            yield why if tests else f"not applicable: {why}"


def _summary(
    subjects: list[Subject], ours: Mapping[str, list[str]], elsewhere: Mapping[str, Elsewhere]
) -> str:
    shown = sum(subject.name in ours for subject in subjects)
    other = [subject.name for subject in subjects if subject.name not in ours]
    tested = sum(bool(elsewhere[name].tests) for name in other)
    return (
        f"Of {len(subjects)} names, scenarios here cover {shown}, and other tests {tested}. "
        f"{len(other) - tested} are not applicable."
    )


if __name__ == "__main__":
    TABLE.write_text(render(), encoding="utf-8")
