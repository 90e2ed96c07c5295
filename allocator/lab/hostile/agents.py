"""Manners of agents."""

from allocator.lab.hostile.names import ODD
from allocator.lab.hostile.words import AgentWords, Manner, Reregister, Said

MOST = float(2**53)


def _changing(interval: int) -> Said:
    return [
        (0, Reregister(AgentWords(attributes=tuple((f"a{interval}-{each}", str(n))
                                                   for n in range(100)))))
        for each in range(20)
    ]  # fmt: skip


AGENTS = (
    Manner(
        "agents-enormous",
        "1,500 agents with 2^53 of a resource each, which together no int64 holds",
        agents=lambda: [
            AgentWords(hostname=f"huge-{n}", resources={"cpus": MOST, "mem": MOST})
            for n in range(1_500)
        ],
    ),
    Manner(
        "agents-tiny",
        "100 agents with next to nothing",
        agents=lambda: [
            AgentWords(hostname=f"tiny-{n}", resources={"cpus": 0.001}) for n in range(100)
        ],
    ),
    Manner(
        "agent-invented-kinds",
        "an agent with 2,000 resources of names that nobody else has",
        agents=lambda: [AgentWords(resources={f"invented-{n}": 1.0 for n in range(2_000)})],
    ),
    Manner(
        "agent-reservations",
        "an agent that reserves CPUs to 2,000 roles",
        agents=lambda: [AgentWords(reserved={f"reserved-{n}": 1.0 for n in range(2_000)})],
    ),
    Manner(
        "agents-invent-kinds",
        "6 agents with 2,000 resources each of names that nobody else has",
        agents=lambda: [
            AgentWords(resources={f"invented-{each}-{n}": 1.0 for n in range(2_000)})
            for each in range(6)
        ],
    ),
    Manner(
        "agents-reserve-to-many",
        "6 agents that reserve CPUs to 2,000 roles each, none twice",
        agents=lambda: [
            AgentWords(reserved={f"reserved-{each}-{n}": 1.0 for n in range(2_000)})
            for each in range(6)
        ],
    ),
    Manner(
        "agent-odd-kinds",
        "an agent with resources of odd names",
        agents=lambda: [AgentWords(resources=dict.fromkeys(ODD, 1.0) | {"cpus": 1.0})],
    ),
    Manner(
        "agent-attributes",
        "an agent of 5,000 attributes, some with empty names, some twice, one of 1 MiB",
        agents=lambda: [
            AgentWords(
                attributes=(
                    *((f"a{n}", "x") for n in range(5_000)), ("", "x"), ("", ""), ("a1", "again"),
                    ("long", "x" * 2**20),
                )
            )
        ],
    ),
    Manner(
        "agent-odd-texts",
        "agents whose host names, attributes, regions and zones are odd",
        agents=lambda: [
            AgentWords(hostname=text, region=text, zone=text, attributes=((text, text),))
            for text in ("", *ODD)
        ],
    ),
    Manner(
        "agents-of-one-host",
        "300 agents of one host name",
        agents=lambda: [AgentWords(hostname="host-0") for _ in range(300)],
    ),
    Manner(
        "agent-reregisters",
        "an agent comes back 20 times an interval, each time with other attributes",
        agents=lambda: [AgentWords()],
        turn=_changing,
    ),
)  # fmt: skip
"""Of agents."""
