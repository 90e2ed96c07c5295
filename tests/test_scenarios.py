"""Readable scripts with golden output: `tests/scenarios/*.txt`.

A script is a sequence of blocks: commands, `----`, what they print, a blank line. Run with
`REWRITE=1` in the environment to write what is printed now into the files; commit the change only
when it is understood.

    role a weight=2            agent 1 cpus=4 mem=8 zone=x     framework 1 roles=a demand=cpus:1
    policy drf mode=oblivious  cycle at=1000                   decline 1 agent=1 refuse_ms=5000
    accept 1 agent=1 cpus=2    finish 1 agent=1 cpus=2         suppress 1 / revive 1
    deactivate 1 / activate 1  lose 1 (an agent)               leave 1 (a framework)
    constrain zone=x           shares
"""

import os
from pathlib import Path

import numpy as np
import pytest

from allocator import core
from allocator.measures import dominant_share
from tests.core.session import CPUS, MEM, Session

SCRIPTS = sorted((Path(__file__).parent / "scenarios").glob("*.txt"))
Words = dict[str, str]


class Player:
    """Runs the commands of one script against a session."""

    def __init__(self) -> None:
        self.roles: dict[str, int] = {}
        self.session = Session(roles={}, options=core.Options(minimum=()))
        self.step = self.session.allocator.step
        self.offers: dict[tuple[int, int], tuple] = {}

    def run(self, line: str) -> str:
        verb, *rest = line.split()
        names = [word for word in rest if "=" not in word or verb == "constrain"]
        words = dict(word.split("=", 1) for word in rest if "=" in word)
        return getattr(self, f"do_{verb}")(*names, words) or "ok"

    def do_role(self, path: str, words: Words) -> None:
        self.roles[path] = len(self.roles) + 1
        self.step(core.Define(roles={self.roles[path]: path}))
        self.step(core.SetWeights({path: float(words.get("weight", 1))}))

    def do_agent(self, agent: str, words: Words) -> None:
        traits = {k: v for k, v in words.items() if k not in ("cpus", "mem")}
        able = frozenset({"HIERARCHICAL_ROLE", "MULTI_ROLE"})
        self.session.agent(
            int(agent), int(words["cpus"]), int(words["mem"]), attributes=traits, capabilities=able
        )

    def do_framework(self, framework: str, words: Words) -> None:
        labels = {core.DEMAND_LABEL: words["demand"]} if "demand" in words else {}
        roles = [self.roles[path] for path in words["roles"].split(",")]
        self.session.framework(int(framework), *roles, labels=labels)

    def do_policy(self, name: str, words: Words) -> None:
        spec = core.PolicySpec(
            name,
            selection=words.get("selection", "listed"),
            mode=words.get("mode", "oblivious"),
            flat=words.get("flat") == "yes",
        )
        self.step(core.SetPolicy(spec))

    def do_constrain(self, expression: str, _words: Words) -> None:
        self.step(core.SetConstraint("", "", expression))

    def do_cycle(self, words: Words) -> str:
        lines = []
        for offer in self.session.cycle(int(words["at"])):
            framework, role, agent, units = offer
            self.offers[framework, agent] = offer
            path = self.session.state.roles.path[role]
            what = " ".join(f"{name} {amount}" for name, amount in units.items())
            lines.append(f"offer to {framework} in {path} on agent {agent}: {what}")
        return "\n".join(lines) or "no offers"

    def do_decline(self, framework: str, words: Words) -> None:
        offer = self.offers.pop((int(framework), int(words["agent"])))
        self.session.give_back(offer, int(words.get("refuse_ms", -1)))

    def do_accept(self, framework: str, words: Words) -> None:
        offer = self.offers.pop((int(framework), int(words["agent"])))
        used = {name: int(words.get(name, 0)) for name in ("cpus", "mem")}
        rest = {name: amount - used.get(name, 0) for name, amount in offer[3].items()}
        self.session.give_back(offer, -1, cpus=rest.get("cpus", 0), mem=rest.get("mem", 0))
        who, role, agent, _ = offer
        held = self.session.holdings(who, role, agent, used["cpus"], used["mem"])
        self.step(core.Transition(held))

    def do_finish(self, framework: str, words: Words) -> None:
        client = next(iter(self.session.state.frameworks.clients[int(framework)]))
        role = int(self.session.state.clients.role[client])
        units = int(words.get("cpus", 0)), int(words.get("mem", 0))
        ended = self.session.holdings(int(framework), role, int(words["agent"]), *units)
        self.step(core.Release(ended, np.array([-1]), np.array([True])))

    def do_suppress(self, framework: str, _words: Words) -> None:
        self.step(core.Suppress(int(framework)))

    def do_revive(self, framework: str, _words: Words) -> None:
        self.step(core.Revive(int(framework)))

    def do_activate(self, framework: str, _words: Words) -> None:
        self.step(core.ActivateFramework(int(framework), active=True))

    def do_deactivate(self, framework: str, _words: Words) -> None:
        self.step(core.ActivateFramework(int(framework), active=False))

    def do_lose(self, agent: str, _words: Words) -> None:
        self.step(core.RemoveAgent(int(agent)))

    def do_leave(self, framework: str, _words: Words) -> None:
        self.step(core.RemoveFramework(int(framework)))

    def do_shares(self, _words: Words) -> str:
        state = self.session.state
        held, total = state.held_by_column(), state.total_by_column()
        share = dominant_share(held, total)
        lines = []
        for client in np.flatnonzero(state.clients.framework).tolist():
            framework = state.clients.framework[client]
            path = state.roles.path[state.clients.role[client]]
            cpus, mem = (held[client, [CPUS, MEM]] // 1000).tolist()
            lines.append(f"{framework} in {path}: cpus {cpus} mem {mem} share {share[client]:.3f}")
        return "\n".join(lines)


def blocks(text: str) -> list[tuple[list[str], list[str]]]:
    """Commands (with comments) and printed lines of each block."""
    parts = [part for part in text.strip().split("\n\n") if part]
    split = (part.partition("----") for part in parts)
    return [(said.splitlines(), answer.splitlines()) for said, _, answer in split]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_scenario(script: Path):
    player, played = Player(), []
    for said, _ in blocks(script.read_text()):
        answers = [player.run(line) for line in said if line and not line.startswith("#")]
        answers = [each for each in answers if each != "ok"] or ["ok"]
        played.append("\n".join([*said, "----", *answers]))
        player.session.allocator.check()
    text = "\n\n".join(played) + "\n"
    if os.environ.get("REWRITE"):
        script.write_text(text)
    assert text == script.read_text()


def test_there_are_scenarios():
    assert len(SCRIPTS) >= 5
