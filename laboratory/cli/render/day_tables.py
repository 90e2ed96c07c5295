"""Tables of a recorded day under several policies."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from allocator.cli.render.terminal import table_of
from laboratory.resources import NAMES

if TYPE_CHECKING:
    from laboratory.experiments.what_if import Outcome

NOTES = """Assumptions: a task is what a framework released in one piece. Its framework wanted it
since it subscribed, revived, or last declined an offer that would have fit it. The task takes the
same time on any agent, and is launched on the first offer that fits it.

A journal does not say what a framework wanted but never ran, what it would have done with other
offers, or which tasks depend on each other. Reserved and revocable resources count as unreserved
and non-revocable.

Operators' rules are those in force at the end of the recording, from the beginning on. Averages of
past use, and what was used of budgets, begin at zero; `usage forget` is not repeated.

Therefore compare the policies with the policy in force as played here, not with the recorded day:
the difference between these two shows how well the model describes your frameworks."""


def totals_table(outcomes: Sequence["Outcome"]) -> Table:
    """One row per outcome."""
    kinds = list(outcomes[0].used)
    used = [f">{NAMES.get(kind, kind)} %" for kind in kinds]
    heads = ["", ">tasks", ">last ends s", *used, ">wait mean s", ">95 % s", ">longest s"]
    rows = []
    for each in outcomes:
        numbers = (each.makespan_s, *(each.used[kind] * 100 for kind in kinds))
        waits = (each.wait_mean_s, each.wait_p95_s, each.wait_max_s)
        texts = (f"{number:.1f}" for number in (*numbers, *waits))
        rows.append((each.name, each.tasks, *texts))
    return table_of(heads, rows)


def roles_table(outcomes: Sequence["Outcome"]) -> Table:
    """One row per role: its dominant share and mean wait in each outcome."""
    rows = []
    for role in sorted({role for each in outcomes for role in each.role_share}):
        cells = (
            f"{each.role_share.get(role, 0.0) * 100:.1f}, {each.role_wait_s.get(role, 0.0):.1f}"
            for each in outcomes
        )
        rows.append((role, *cells))
    names = [f">{each.name}" for each in outcomes]
    return table_of(["role: dominant share %, mean wait s", *names], rows)
