"""Readable scripts with golden output: `tests/scenarios/**/*.txt`.

A file holds one scenario, or several that each begin with `=== title`. Two header lines may follow:
`Mesos: NAME, ...` names Mesos's own tests or bugs that it corresponds to; `policies: NAME, ...` has
it played with each of them, or with `every` one, all of which must print the same. The rest are
blocks: commands, `----`, their output, a blank line. `tests.world.script` lists the commands.

Run with `REWRITE=1` in the environment to write the current output into the files; commit the
change only when you understand it.
"""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from allocator.core import PolicySpec
from allocator.policies import POLICIES
from tests.world.script import Script

HERE = Path(__file__).parent / "scenarios"
FILES = sorted(HERE.rglob("*.txt"))
EVERY = [*(name for name in POLICIES if name != "ceei"), "drf in tasks", "tsf in tasks"]
"""Without known demands, a policy of whole tasks offers all that is free, too."""

FEW = ("drf", "choosy", "ps-dsf", "tsf in tasks")
"""The policies of the first tier, for a scenario for every policy."""

MODE = re.compile(r"(?P<name>\S+)(?: in (?P<unit>tasks))?")


@dataclass
class Scenario:
    """One scenario of a file.

    title: empty if the file holds only this one.
    head: lines before the first block: Mesos's tests, and its policies.
    blocks: commands with comments, and printed lines.
    """

    title: str
    head: list[str]
    blocks: list[tuple[list[str], list[str]]]

    @property
    def policies(self) -> list[str]:
        """The policies it is played with; a single empty name: the one that its commands set."""
        for line in self.head:
            if line.startswith("policies:"):
                names = [name.strip() for name in line.removeprefix("policies:").split(",")]
                return EVERY if names == ["every"] else names
        return [""]

    def text(self, printed: list[list[str]]) -> str:
        """Format it with new output."""
        lines = [f"=== {self.title}"] if self.title else []
        parts = ["\n".join([*lines, *self.head])] if lines or self.head else []
        for (said, _), answers in zip(self.blocks, printed, strict=True):
            parts.append("\n".join([*said, "----", *(answers or ["ok"])]))
        return "\n\n".join(parts) + "\n"


def read(text: str) -> Iterator[Scenario]:
    """Parse the scenarios of a file."""
    for piece in re.split(r"^(?==== )", text, flags=re.MULTILINE):
        if not piece.strip():
            continue
        title = ""
        parts = [part for part in piece.strip().split("\n\n") if part]
        head: list[str] = []
        if parts[0].startswith("=== "):
            title, *head = parts.pop(0).splitlines()
            title = title.removeprefix("=== ")
        split = (part.partition("----") for part in parts)
        blocks = [(said.splitlines(), answer.split("\n")[1:]) for said, _, answer in split]
        yield Scenario(title, head, blocks)


def spec_of(name: str) -> PolicySpec:
    """Parse the name of a policy in a header, such as `tsf in tasks`."""
    match = MODE.fullmatch(name)
    assert match, name
    selection = "best_fit" if match["name"] == "bf-drf" else "listed"
    mode = "characterised" if match["unit"] else "oblivious"
    return PolicySpec(match["name"], selection=selection, mode=mode)


def play(scenario: Scenario, policy: str) -> list[list[str]]:
    """Play a scenario; returns the output of each block."""
    script = Script(spec_of(policy) if policy else None)
    printed = []
    for said, _ in scenario.blocks:
        answers = [script.run(line) for line in said if line and not line.startswith("#")]
        printed.append([line for answer in answers if answer for line in answer.splitlines()])
        script.world.allocator.check()
    return printed


SCENARIOS = [(file, scenario) for file in FILES for scenario in read(file.read_text())]


def _name(case: tuple[Path, Scenario]) -> str:
    file, scenario = case
    return f"{file.stem}-{scenario.title}".removesuffix("-").replace(" ", "_")


@pytest.mark.parametrize("case", SCENARIOS, ids=_name)
def test_scenario(case: tuple[Path, Scenario]):
    file, scenario = case
    if os.environ.get("REWRITE"):
        rewrite(file, scenario.title)
    policies = scenario.policies
    prints_the_same(scenario, FEW if policies is EVERY else policies)


@pytest.mark.long
@pytest.mark.parametrize("case", [one for one in SCENARIOS if one[1].policies is EVERY], ids=_name)
def test_scenario_with_the_other_policies(case: tuple[Path, Scenario]):
    _, scenario = case
    prints_the_same(scenario, [policy for policy in EVERY if policy not in FEW])


def prints_the_same(scenario: Scenario, policies: Iterable[str]) -> None:
    wanted = [answer if answer != ["ok"] else [] for _, answer in scenario.blocks]
    for policy in policies:
        printed = play(scenario, policy)
        assert os.environ.get("REWRITE") or printed == wanted, policy


def rewrite(file: Path, title: str) -> None:
    """Write the current output of one scenario into its file."""
    scenarios = list(read(file.read_text()))
    texts = []
    for each in scenarios:
        answers = [answer for _, answer in each.blocks]
        printed = play(each, each.policies[0]) if each.title == title else answers
        texts.append(each.text(printed))
    file.write_text("\n".join(texts))


def test_a_file_is_written_as_it_is_read():
    for file in FILES:
        scenarios = list(read(file.read_text()))
        answers = [[answer for _, answer in each.blocks] for each in scenarios]
        texts = [each.text(said) for each, said in zip(scenarios, answers, strict=True)]
        assert "\n".join(texts) == file.read_text(), file


def test_there_are_scenarios():
    assert set(FEW) < set(EVERY)
    assert len(SCENARIOS) >= 140
