"""Tables of agents, frameworks and roles."""

import io

import pytest
from rich.console import Console, ConsoleDimensions

from allocator.cli.remote.output import plain
from allocator.cli.render import list_tables
from allocator.cli.render.fitting import title_of
from allocator.v1 import admin_pb2 as pb
from allocator.v1.explain_pb2 import Holder
from allocator.v1.types_pb2 import Quantities


def amounts(**found: int) -> Quantities:
    return Quantities(name=found, amount=found.values())


AGENTS = pb.ListAgentsResponse(
    agents=[
        pb.ListedAgent(
            agent_id="a1",
            hostname="h1",
            attributes={"ssd": "", "rack": "r2"},
            zone="z",
            states=["drained", "maintenance"],
            total=amounts(cpus=8000, mem=1024),
            free=amounts(cpus=2000),
            held_share=0.75,
            frameworks=2,
            holders=[Holder(framework=name) for name in ("spark", "kafka", "spark")],
        ),
        pb.ListedAgent(agent_id="a2", states=["active"]),
    ],
    left_out=1234,
)


def test_agents_are_a_table_and_what_is_left_out_is_said(capsys):
    list_tables.show(plain(AGENTS), "agents")
    head, one, other, more = capsys.readouterr().out.splitlines()
    assert head.split() == ["agent", "state", "held", "free", "frameworks"]
    assert one.split() == ["h1", "drained,maintenance", "75", "%", "cpus:2", "2"]
    assert other.split()[0] == "a2"
    assert more == "not shown: 1,234 agents; --limit shows more"


def test_wide_has_attributes_and_holders(capsys):
    list_tables.show(plain(AGENTS), "agents", wide=True)
    text = capsys.readouterr().out
    assert "zone=z;rack=r2;ssd" in text or "zone=z;ssd;rack=r2" in text
    assert "spark, kafka" in text


def test_names_that_are_not_all_come_with_a_warning(capsys):
    assert list(list_tables.names(plain(AGENTS), "agents")) == ["a1", "a2"]
    assert capsys.readouterr().err == "warning: not shown: 1,234 agents; --limit shows more\n"


def test_a_framework_shows_its_roles_and_what_differs_in_them(capsys):
    roles = [
        pb.Share(role="eng", demand=amounts(cpus=1000)),
        pb.Share(role="ops", demand=amounts(cpus=1000)),
        pb.Share(role="x"),
    ]
    found = pb.ListedFramework(
        framework_id="id-1", roles=roles, role_count=4, states=["active", "waiting"]
    )
    response = pb.ListFrameworksResponse(frameworks=[found], left_out=1)
    list_tables.show(plain(response), "frameworks")
    _, row, more = capsys.readouterr().out.splitlines()
    assert "eng, ops, x, and 1 more" in row
    assert row.endswith("cpus:1, unknown")
    assert "active,waiting" in row
    assert more == "not shown: 1 framework; --limit shows more"


@pytest.mark.parametrize("wide", [True, False])
def test_names_do_not_control_the_terminal(capsys, wide):
    name = "\x1b]0;owned\x07\u202e"
    agent = pb.ListedAgent(agent_id=name, hostname=name, attributes={name: name})
    agent.holders.add(framework=name)
    framework = pb.ListedFramework(framework_id=name, name=name, user=name)
    role = pb.ListedRole(role=name)
    for response, what in (
        (pb.ListAgentsResponse(agents=[agent]), "agents"),
        (pb.ListFrameworksResponse(frameworks=[framework]), "frameworks"),
        (pb.ListRolesResponse(roles=[role]), "roles"),
    ):
        list_tables.show(plain(response), what, wide=wide)
    assert capsys.readouterr().out.replace("\n", "").isprintable()


def test_a_screen_has_as_many_rows_as_fit():
    agents = [pb.ListedAgent(agent_id=f"a{number}", states=["active"]) for number in range(30)]
    data = plain(pb.ListAgentsResponse(agents=agents, left_out=5))
    size = ConsoleDimensions(width=80, height=10)
    screen = list_tables.watched(data, "no answer", size, what="agents", wide=False)
    out = io.StringIO()
    Console(width=80, file=out).print(screen)
    problem, left_out, head, *rows, more = out.getvalue().splitlines()
    assert problem == "no answer"
    assert left_out == "not shown: 5 agents; --limit shows more"
    assert head.split()[0] == "agent"
    assert [each.split()[0] for each in rows] == ["a0", "a1", "a2", "a3", "a4"]
    assert more == "and 25 more"


def test_wide_has_every_column():
    for listed in list_tables.LISTS.values():
        others = {"agent", "framework"}  # id, and host or name
        titles = {title_of(column) for column in listed.columns} - others
        assert titles <= {title_of(column) for column in listed.every_column}
        assert set(listed.drop) <= titles
