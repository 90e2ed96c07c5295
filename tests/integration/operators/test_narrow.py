"""Commands on a real terminal of 80 columns and 24 lines: no value is broken across lines."""

import re
from collections.abc import Iterator

import pytest
from rich.cells import cell_len

from allocator.core import (
    AddAgent,
    AddFramework,
    AgentInfo,
    Define,
    FrameworkInfo,
    Hold,
    Kind,
)
from tests.integration.operators.terminal import Terminal
from tests.integration.operators.test_lasting_settings import ask
from tests.server.sidecar_process import GrpcModule, SidecarProcess
from tests.world.rows import holdings

TENANTS = 14
AGENTS = 6
WIDTH = 80

NESTED = frozenset({"HIERARCHICAL_ROLE", "MULTI_ROLE"})
ROLES = ("science/genomics/alignment", "eng/ads/click-through-rates")


def host(number: int) -> str:
    return f"rack-{number:02}-node-{number}.cluster.example.com"


CLUSTER = (
    Define(
        {0: Kind("cpus"), 1: Kind("mem")},
        dict(enumerate(("eng", "eng/ads", "science", "science/genomics", *ROLES), start=1)),
    ),
    *(
        AddFramework(
            number,
            # Two frameworks of one name in one role, and one framework in both roles.
            FrameworkInfo(
                f"c2f1f4a2-6d8c-4b1b-9a39-5f4b4f1d2a7e-{number:04}",
                name=f"tenant-{min(number, TENANTS - 1)}",
            ),
            (5, 6) if number == 1 else (5 + number % 2,),
        )
        for number in range(1, TENANTS + 1)
    ),
    *(
        AddAgent(
            number,
            AgentInfo(f"agent-{number}", hostname=host(number), capabilities=NESTED),
            {0: 16_000, 1: 65_536_000},
        )
        for number in range(1, AGENTS + 1)
    ),
    Hold(
        holdings(
            *(
                (1 + number, 5 + (1 + number) % 2, number, 16_000, 65_536_000)
                for number in range(1, AGENTS)
            )
        )
    ),
)


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    """A sidecar of a full cluster, with long names, after a few cycles."""
    with SidecarProcess() as process, process.channel() as channel:
        module = GrpcModule(channel).begin(CLUSTER)
        for _ in range(12):
            module.batch(cycle=True)
        ask(process, "drain", "set", host(1))
        ask(process, "demand", "set", "cpus:1.25;mem:2048", "--framework-name", "tenant-*")
        yield process.targets[0]
        module.leave()


def on_terminal(*words: str, typed: str = "") -> list[str]:
    """Run a command on a terminal of 80 x 24; returns its lines without colours."""
    terminal = Terminal(*words, lines=24, columns=WIDTH)
    if typed:
        terminal.read_until("cycle")
        terminal.type(typed)
    assert terminal.ends() == 0, terminal.text
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.text)
    return plain.replace("\r", "").splitlines()


COMMANDS = (
    "status",
    "shares",
    "shares --fair",
    "agents",
    "frameworks",
    "roles",
    "drain list",
    "settings show",
    "explain framework tenant-9",
    f"explain role {ROLES[0]}",
    "explain agent agent-2",
    "top",
)

_HOST = re.compile(r"rack-\S*")
_ID = re.compile(r"c2f1f4a2-\S*")


@pytest.mark.parametrize("words", COMMANDS)
def test_nothing_is_wider_than_the_terminal_or_broken_in_a_value(target, words):
    lines = on_terminal(*words.split(), "--target", target, typed="q" if words == "top" else "")
    assert [line for line in lines if cell_len(line) > WIDTH] == []
    text = "\n".join(lines)
    hosts = {host(number) for number in range(1, AGENTS + 1)}
    for found in _HOST.findall(text):
        assert found.strip(",()") in hosts or "…" in found, found
    for found in _ID.findall(text):
        assert re.fullmatch(r"c2f1f4a2-6d8c-4b1b-9a39-5f4b4f1d2a7e-\d{4},?|.*…", found), found


@pytest.mark.parametrize("words", ["shares", "top"])
def test_a_framework_is_one_line(target, words):
    lines = on_terminal(words, "--target", target, typed="q" if words == "top" else "")
    rows = [line for line in lines if line.startswith("tenant-")]
    assert len(rows) == TENANTS + 1  # one of them has two roles
    (head,) = [line for line in lines if line.startswith("framework ")]
    assert {"framework", "role", "waited", "share", "state"} <= set(head.split())


def test_wide_leaves_nothing_out_and_leaves_lines_to_the_terminal(target):
    lines = on_terminal("shares", "--wide", "--target", target)
    (head,) = [line for line in lines if line.startswith("framework ")]
    assert head.split()[-1] == "state"
    assert not [line for line in lines if "…" in line]


def test_an_explanation_has_one_headline_and_one_table_of_cycles(target):
    for words in ("framework tenant-9", f"role {ROLES[0]}"):
        lines = on_terminal("explain", *words.split(), "--target", target)
        assert " ".join(lines[:2]).count(":") <= 2
        assert len([line for line in lines if line.startswith("cycle ")]) == 1
        text = " ".join(lines)
        assert " 1 agents" not in text
        assert " 1 cycles" not in text
