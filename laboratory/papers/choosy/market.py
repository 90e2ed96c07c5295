"""Choosy: constrained max-min fairness (CMMF) as the outcome of a market (section 4.3).

Each user has a budget and wants as many machines as it can use, all of equal value to it. In an
equilibrium all machines are sold, and every user spends its budget on the cheapest machines that it
can use. It is computed as the optimum of Eisenberg and Gale: the maximum sum of budgets times
logarithms of machines. That solver shares nothing with the one of CMMF, which cuts a flow network;
and its result is checked against the definition of an equilibrium.

Source: section 4.3 of the paper.
"""

from dataclasses import dataclass

import numpy as np

from allocator.core import Bools, Floats, Ints
from allocator.solvers.fluid import proportional_fairness_agents
from allocator.solvers.max_min import max_min
from laboratory.papers.choosy.examples import EXAMPLES
from laboratory.papers.report import PaperReport, Row, beside, counter_examples, paragraphs

SLACK = 1e-6
"""Tolerance of fractions that should be 0, for the solver's rounding."""

NEAR = 1e-4
"""The same for machines: their error is the root of the error of the sum of logarithms."""

_PRIVATE_PART = 0.3  # fraction of the types that only one user can use


@dataclass(frozen=True, slots=True)
class Graph:
    """A constraint graph.

    eligible (U, T): whether each user can use machines of each type; each user can use some type,
        and each type has a user.
    count (T,): machines of each type, at least one.
    budget (U,): also the weights of CMMF.
    """

    eligible: Bools
    count: Ints
    budget: Floats

    @property
    def contended(self) -> Bools:
        """Whether at least two users can use machines of each type, (T,)."""
        return self.eligible.sum(axis=0) > 1


@dataclass(frozen=True, slots=True)
class Market:
    """The outcome of a market.

    given (U, T): machines of each type that each user bought.
    prices (T,): of one machine of each type.
    """

    given: Floats
    prices: Floats

    @property
    def machines(self) -> Floats:
        """Machines of each user, (U,)."""
        return self.given.sum(axis=1)


def market(graph: Graph) -> Market:
    """Find an equilibrium; its numbers of machines by user are unique."""
    found = proportional_fairness_agents.solve(
        np.ones((len(graph.eligible), 1)),
        graph.count[:, None].astype(np.float64),
        graph.eligible,
        graph.budget,
    )
    return Market(found.tasks, found.prices[:, 0])


def cmmf(graph: Graph) -> Floats:
    """Machines of each user under CMMF, weighted by the budgets, (U,)."""
    return max_min.solve(graph.eligible, graph.count, graph.budget).machines


def apart(one: Floats, other: Floats) -> float:
    """The largest relative difference of a user's machines between two results."""
    return float((np.abs(one - other) / np.maximum(one, other)).max())


def overpaid(graph: Graph, found: Market) -> float:
    """The largest part of a user's spending that cheaper machines would have saved."""
    spent = found.given @ found.prices
    cheapest = np.where(graph.eligible, found.prices, np.inf).min(axis=1)
    return float((1 - cheapest * found.machines / spent).max())


def unspent(graph: Graph, found: Market) -> float:
    """The largest part of a budget that is unspent or overspent."""
    return float(np.abs(found.given @ found.prices / graph.budget - 1).max())


def unsold(graph: Graph, found: Market) -> float:
    """The largest part of a type's machines that is unsold or oversold."""
    return float(np.abs(found.given.sum(axis=0) / graph.count - 1).max())


def contended_part(graph: Graph) -> Graph:
    """The graph without machines that only one user can use, and without users who then have none.

    Budgets are equal: the text has none in its bargaining.
    """
    types = graph.contended
    users = graph.eligible[:, types].any(axis=1)
    eligible = graph.eligible[np.ix_(users, types)]
    return Graph(eligible, graph.count[types], np.ones(int(users.sum())))


def bargained(graph: Graph) -> Floats:
    """Machines of each user if those that only it can use are free for it, (U,)."""
    alone: Floats = graph.eligible[:, ~graph.contended] @ graph.count[~graph.contended].astype(
        float
    )
    rest = contended_part(graph)
    if rest.eligible.size:
        alone[graph.eligible[:, graph.contended].any(axis=1)] += market(rest).machines
    return alone


def draw(rng: np.random.Generator, *, private: bool = False, equal: bool = True) -> Graph:
    """Draw two to six users and two to eight types of machines.

    private: some types may have one user only; else each has at least two.
    equal: whether budgets are equal.
    """
    users, types = int(rng.integers(2, 7)), int(rng.integers(2, 9))
    eligible = rng.random((users, types)) < rng.uniform(0.1, 0.6)
    for type_ in range(types):
        alone = private and rng.random() < _PRIVATE_PART
        eligible[rng.choice(users, 1 if alone else 2, replace=False), type_] = True
        if alone:
            eligible[:, type_] = rng.permutation(np.arange(users) == 0)
    at_all = eligible.any(axis=1)
    budget = np.ones(users) if equal else rng.uniform(0.5, 4, users)
    return Graph(eligible[at_all], rng.integers(1, 20, types), budget[at_all])


def differences(graph: Graph) -> tuple[float, float, float, float]:
    """The distance of the market from CMMF, and from each condition of an equilibrium."""
    found = market(graph)
    far = apart(found.machines, cmmf(graph))
    return far, overpaid(graph, found), unspent(graph, found), unsold(graph, found)


def _row(name: str, graphs: list[Graph]) -> Row:
    worst = np.max([differences(each) for each in graphs], axis=0).tolist()
    return Row(name, beside(worst, [0.0] * len(worst), (NEAR, SLACK, SLACK, SLACK)))


def example(name: str) -> Graph:
    """One of the paper's examples, with equal budgets."""
    eligible = EXAMPLES[name].eligible
    return Graph(eligible, np.ones(eligible.shape[1], np.int64), np.ones(len(eligible)))


def market_equilibrium(seed: int = 0, trials: int = 200) -> PaperReport:
    """Section 4.3: a market's outcome is CMMF."""
    rng = np.random.default_rng(seed)
    contended = [draw(rng) for _ in range(trials)]
    budgets = [draw(rng, equal=False) for _ in range(trials)]
    private = [draw(rng, private=True) for _ in range(trials)]
    other = [apart(bargained(each), cmmf(each)) > NEAR for each in private]
    percent = 100 * float(np.mean(other))
    return PaperReport(
        name="choosy-market",
        title="A market against constrained max-min fairness: the largest difference found",
        source="Ghodsi et al., EuroSys 2013, sec. 4.3",
        columns=("machines of a user", "overpaid", "unspent", "unsold"),
        rows=(
            _row("Fig. 1, contended machines", [contended_part(example("Fig. 1"))]),
            _row("each machine suits two users or more", contended),
            _row("the same, budgets from 0.5 to 4", budgets),
            _row("some machines suit one user, all are sold", private),
            Row(
                "some machines suit one user, who has them for nothing (% of graphs that differ)",
                (counter_examples(percent),),
            ),
        ),
        notes=paragraphs(f"""
            {trials} random graphs of two to six users and two to eight types of machines. All
            columns are fractions: how much a user's machines differ from CMMF, weighted by the
            budgets; how much of its spending cheaper machines would have saved; how much of its
            budget is not spent; how many machines of a type are not sold. The last three show that
            prices and purchases are an equilibrium.

            By the text, both agree if each machine suits at least two users. In the paper's
            bargaining, machines that suit only one user are given away first, at no price; the last
            row shows that the condition is then necessary. If these machines are sold like all
            others, the market reaches CMMF on every graph.
        """),
    )
