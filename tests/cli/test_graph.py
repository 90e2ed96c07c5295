"""`graph`: the constraint graph of a recorded cluster, in files that networkx can read."""

import json
from pathlib import Path

import networkx as nx
import pytest
from typer.testing import CliRunner

from allocator.cli.app import app
from allocator.cli.local.graph import constraint_graph_of, write
from allocator.core import (
    AddAgent,
    AddFramework,
    AgentInfo,
    Allocator,
    Define,
    FrameworkInfo,
    Kind,
    Settings,
)
from allocator.policies import build
from tests.server.engine.test_loop_journal import journaled, play


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    play(journaled(tmp_path / "journal"))
    return tmp_path / "journal"


def run(*arguments: object):
    return CliRunner().invoke(app, ["graph", *map(str, arguments)])


def test_a_graph_is_read_again_with_its_shares(journal: Path, tmp_path: Path) -> None:
    out = tmp_path / "graph.json"
    done = run(journal, out, "--shares")
    assert done.exit_code == 0, done.output
    graph = nx.node_link_graph(json.loads(out.read_text()), edges="edges")
    users = [data for _, data in graph.nodes(data=True) if data["side"] == 0]
    types = [data for _, data in graph.nodes(data=True) if data["side"] == 1]
    assert users
    assert sum(data["machines"] for data in users) == sum(data["count"] for data in types)
    assert f"{len(users)} frameworks" in done.output
    assert all("cpus" in data for data in types)


@pytest.mark.parametrize("fairness", ["pf", "ps-dsf"])
def test_tasks_are_worked_out_where_demands_are_known(journal, tmp_path, fairness) -> None:
    out = tmp_path / "graph.json"
    done = run(journal, out, "--tasks", fairness)
    assert done.exit_code == 0, done.output
    graph = nx.node_link_graph(json.loads(out.read_text()), edges="edges")
    users = [name for name, data in graph.nodes(data=True) if data["side"] == 0]
    tasks = [graph.nodes[name]["tasks"] for name in users if "tasks" in graph.nodes[name]]
    assert tasks
    assert min(tasks) > 0
    assert sum(tasks) == pytest.approx(
        sum(data.get("tasks", 0.0) for *_, data in graph.edges(data=True))
    )


def test_a_graph_is_written_for_other_programs_and_drawn(journal: Path, tmp_path: Path) -> None:
    assert run(journal, tmp_path / "graph.graphml").exit_code == 0
    assert len(nx.read_graphml(tmp_path / "graph.graphml"))
    assert run(journal.parent, tmp_path / "graph.svg", "--shares", "--tasks", "pf").exit_code == 0
    assert "<svg" in (tmp_path / "graph.svg").read_text()


def test_files_that_cannot_be_written_are_reported(journal: Path, tmp_path: Path) -> None:
    wrong = run(journal, tmp_path / "graph.doc")
    assert wrong.exit_code == 2
    assert ".graphml, .json, .png" in wrong.output + wrong.stderr
    nowhere = run(journal, tmp_path / "no" / "graph.json")
    assert nowhere.exit_code == 1
    assert "cannot be written" in nowhere.output + nowhere.stderr
    empty = tmp_path / "empty"
    empty.write_bytes(b"")
    assert run(empty, tmp_path / "graph.json").exit_code == 1


def test_odd_names_break_no_picture_and_no_file(tmp_path: Path) -> None:
    """The library draws text between dollars as a formula; XML has no control characters."""
    graph: nx.Graph = nx.Graph()
    graph.add_node(r"a$\frac{$ in eng", side=0)
    graph.add_node("h1", side=1)
    graph.add_edge(r"a$\frac{$ in eng", "h1")
    write(graph, tmp_path / "graph.svg")
    assert "<svg" in (tmp_path / "graph.svg").read_text()
    allocator = Allocator(build, Settings())
    for event in (
        Define({0: Kind("cpus")}, {1: "eng"}),
        AddFramework(1, FrameworkInfo("id\x1b]0;x\x07-1"), (1,)),
        AddAgent(1, AgentInfo("a1", hostname="host\x1b[2J"), {0: 8000}),
    ):
        allocator.step(event)
    write(constraint_graph_of(allocator), tmp_path / "graph.graphml")
    assert set(nx.read_graphml(tmp_path / "graph.graphml")) == {
        "id\N{REPLACEMENT CHARACTER}]0;x\N{REPLACEMENT CHARACTER}-1 in eng",
        "host\N{REPLACEMENT CHARACTER}[2J",
    }
