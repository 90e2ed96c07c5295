"""`mesos-allocator graph`: export, draw and evaluate which frameworks may use which agents."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from allocator.cli.local.replay import journals_in, play_file
from allocator.cli.tree import Exit, Playing, fail, shown_example
from allocator.plain import json_text, printable

if TYPE_CHECKING:
    import networkx as nx

    from allocator.core import AgentInfo, Allocator

HELP = """Export the constraint graph of a recorded cluster: which frameworks may use which agents.

Replays a journal to its end and writes the graph at that moment. The nodes of the graph are
frameworks and types of agents. Agents belong to one type if the constraints of all frameworks treat
them alike. --shares adds constrained max-min fair shares (CMMF), in agents. --tasks adds the number
of tasks of each framework whose demand is known.

FILE ends in .graphml (networkx, Gephi, yEd), .json (networkx's node-link data), or .png, .svg or
.pdf (a drawing, which needs the extra `plots`).
"""

DRAWN = (".png", ".svg", ".pdf")
ENDINGS = (".graphml", ".json", *DRAWN)


class Fairness(StrEnum):
    """Fairness criterion by which numbers of tasks are computed."""

    PF = "pf"
    PS_DSF = "ps-dsf"


def register(app: typer.Typer) -> None:
    example = "graph /var/lib/mesos-allocator graph.svg --shares"
    app.command(help=HELP, cls=Playing, epilog=shown_example(example))(graph)


def graph(
    journal: Annotated[
        Path,
        typer.Argument(
            metavar="JOURNAL|DIR",
            exists=True,
            readable=True,
            show_default=False,
            help="A journal, or the directory of several.",
        ),
    ],
    out: Annotated[Path, typer.Argument(metavar="FILE", show_default=False, help="File to write.")],
    shares: Annotated[bool, typer.Option("--shares", help="Compute the fair shares.")] = False,
    tasks: Annotated[
        Fairness | None,
        typer.Option(help="Compute fluid task counts by proportional fairness, or by PS-DSF."),
    ] = None,
) -> None:
    from allocator.solvers.graphs import max_min_shares

    if out.suffix not in ENDINGS:
        fail(Exit.USAGE, f"FILE: {out.name!r} must end in one of {', '.join(ENDINGS)}")
    if not out.absolute().parent.is_dir():
        fail(Exit.FAILURE, f"{out} cannot be written: {out.parent} is not a directory")
    _try_to_write(out)
    allocator, damage = _replayed(journal)
    if allocator is None:
        text = f"{journal} ends without a framework that could be served"
        fail(Exit.FAILURE, "; ".join([text, *damage]))
    for line in damage:
        typer.echo(printable(line), err=True)
    made = constraint_graph_of(allocator)
    if shares:
        made = max_min_shares(made)
    if tasks is not None:
        _add_tasks(made, allocator, tasks)
    try:
        write(made, out)
    except OSError as error:
        fail(Exit.FAILURE, f"{out} cannot be written: {error.strerror}")
    users = sum(data["side"] == 0 for _, data in made.nodes(data=True))
    types = len(made) - users
    typer.echo(f"{out}: {users} frameworks, {types} types of agents, {len(made.edges)} edges")


def _try_to_write(out: Path) -> None:
    """End if the file cannot be written, before the journal is read."""
    was_there = out.exists()
    try:
        with out.open("ab"):
            pass
        if not was_there:
            out.unlink()
    except OSError as error:
        fail(Exit.FAILURE, f"{out} cannot be written: {error.strerror}")


def _replayed(journal: Path) -> tuple["Allocator | None", list[str]]:
    """Return a journal's last allocator with a framework to serve, and a line per damaged file."""
    from allocator import policies
    from allocator.core import Allocator
    from allocator.wire.journal.replay import Replay

    made: list[Allocator] = []

    def make(*arguments: Any, **named: Any) -> Allocator:  # noqa: ANN401 - as the class takes them
        made.append(Allocator(*arguments, **named))
        return made[-1]

    player = Replay(policies.build, policies.substitute(), check=False, make=make)
    read = [play_file(path, player) for path in journals_in(journal)]
    player.finish()
    damage = [f"{each.path}: the rest was skipped: {each.damage}" for each in read if each.damage]
    return next((each for each in reversed(made) if each.problem() is not None), None), damage


def constraint_graph_of(allocator: "Allocator") -> "nx.Graph[Any]":
    """Make the graph of an allocator's cluster; a type of agents has the name of one of them."""
    from allocator.policies.plan_guided import group_agents
    from allocator.solvers.graphs import constraint_graph

    problem = allocator.problem()
    assert problem is not None
    groups, state = group_agents(problem), allocator.state
    users = []
    for client in groups.clients.tolist():
        info = problem.frameworks[client]
        path = state.roles.path[int(state.clients.role[client])]
        users.append(printable(f"{info.framework_id if info else client} in {path}"))
    types: list[str] = []
    one_of: dict[int, AgentInfo | None] = {}
    for agent, group in enumerate(groups.group.tolist()):
        one_of.setdefault(group, problem.agents[agent])
    for group, count in enumerate(groups.count.tolist()):
        info_of_one = one_of[group]
        host = info_of_one.hostname if info_of_one else str(group)
        types.append(printable(f"{host} and {count - 1} like it" if count > 1 else host))
    weight = groups.weight * len(groups.weight)
    graph = constraint_graph(groups.eligible, groups.count, weight, users=users, types=types)
    for column, name in enumerate(types):
        for resource, amount in zip(problem.resources, groups.capacity[column], strict=True):
            graph.nodes[name][resource] = float(amount) / 1000
    return graph


def _add_tasks(graph: "nx.Graph[Any]", allocator: "Allocator", fairness: Fairness) -> None:
    """Add fair task counts to frameworks with known demand; agents of one type count as one."""
    import numpy as np

    from allocator.policies.plan_guided import group_agents
    from allocator.solvers.graphs import fair_tasks, per_server_tasks, resource_graph

    problem = allocator.problem()
    assert problem is not None
    groups = group_agents(problem)
    known = (problem.demand[groups.clients] > 0).any(axis=1) & (groups.direction > 0).any(axis=1)
    users = [name for name, data in graph.nodes(data=True) if data["side"] == 0]
    solve = {Fairness.PF: fair_tasks, Fairness.PS_DSF: per_server_tasks}[fairness]
    solved = solve(
        resource_graph(
            groups.direction[known],
            groups.capacity * groups.count[:, None],
            groups.eligible[known],
            groups.weight[known] * len(groups.weight),
            resources=problem.resources,
            frameworks=[users[row] for row in np.flatnonzero(known).tolist()],
            agents=[name for name, data in graph.nodes(data=True) if data["side"] == 1],
        )
    )
    for name, data in solved.nodes(data=True):
        if "tasks" in data:
            graph.nodes[name]["tasks"] = data["tasks"]
    for user, kind, data in solved.edges(data=True):
        graph.edges[user, kind]["tasks"] = data["tasks"]


def write(graph: "nx.Graph[Any]", out: Path) -> None:
    import networkx as nx

    if out.suffix == ".json":
        text = json_text(nx.node_link_data(graph, edges="edges"), indent=1)
        out.write_text(text + "\n")
    elif out.suffix == ".graphml":
        nx.write_graphml(graph, out)
    else:
        _draw(graph, out)


def _draw(graph: "nx.Graph[Any]", out: Path) -> None:
    """Draw users on the left, types on the right, and computed values beside the names."""
    import networkx as nx
    from matplotlib.figure import Figure

    users = [name for name, data in graph.nodes(data=True) if data["side"] == 0]
    figure = Figure(figsize=(9, max(3, 0.3 * max(len(users), len(graph) - len(users)))))
    axes = figure.add_subplot()
    place = nx.bipartite_layout(graph, users, align="vertical")
    labels = {}
    for name, data in graph.nodes(data=True):
        found = [f"{data[key]:.3g} {key}" for key in ("machines", "tasks") if key in data]
        # matplotlib would parse text between two dollars as a formula.
        shown = str(name).replace("$", r"\$")
        labels[name] = f"{shown}: {', '.join(found)}" if found else shown
    color = [data.get("cut", data["side"]) for _, data in graph.nodes(data=True)]
    nx.draw_networkx(
        graph, place, ax=axes, labels=labels, node_color=color, cmap="Pastel1", font_size=7,
        edge_color="0.7", node_size=120,
    )  # fmt: skip
    axes.margins(0.25, 0.05)
    axes.set_axis_off()
    figure.savefig(out, bbox_inches="tight")
