"""What follows from the demo: how fair its runs were, what they say of the paper's claims."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from allocator.cli.render.terminal import console, table_of

if TYPE_CHECKING:
    from allocator.lab.experiments.claims import Case, Measures
    from allocator.lab.experiments.runs import Result
    from allocator.lab.reports.run_record import Fairness, RoleLevel

ROLES_MAX = 3
"""Of more roles only the one with the least share and the one with the most are shown."""


def print_conclusions(results: Sequence["Result"], *, with_claims: bool) -> None:
    """Print fairness, and of section V what the runs say of each claim."""
    out = console()
    out.print(fairness_table(results))
    out.print("share: of the dominant resource, mean (least) after the first minute and")
    out.print("while the load was full; Jain: index of the roles' shares, 1: equal")
    if with_claims:
        out.print()
        out.print(claims_table(results))
        out.print("±: of about as long; the paper prints curves, and no number for any of these")
        out.print(
            "one seed proves nothing: `mesos-allocator demo claims` plays ten, with intervals"
        )


def fairness_table(results: Sequence["Result"]) -> Table:
    """A line a run: what the roles had, and how even that was."""
    roles = sorted({role for result in results for role in result.figures.fairness.roles})
    few = len(roles) <= ROLES_MAX
    heads = [f">{role} %" for role in roles] if few else [">least %", ">most %"]
    rows = []
    for result in results:
        run = result.figures
        shown = [run.fairness.roles.get(role) for role in roles] if few else _ends(run.fairness)
        cells = [_level(each) for each in shown]
        cells += [f"{run.fairness.jain:.3f}", f"{run.fairness.jain_least:.2f}"]
        rows.append((result.name, *cells))
    return table_of(["share", *heads, ">Jain", ">least"], rows)


def _ends(fairness: "Fairness") -> list["RoleLevel | None"]:
    ordered = sorted(fairness.roles.values(), key=lambda level: level.mean)
    return [ordered[0], ordered[-1]] if ordered else [None, None]


def _level(level: "RoleLevel | None") -> str:
    return "" if level is None else f"{level.mean * 100:.1f} ({level.least * 100:.0f})"


def claims_table(results: Sequence["Result"]) -> Table:
    """A line for each claim of section V whose runs were played."""
    from allocator.lab.experiments.claims import look_once

    rows = []
    for seen in look_once(_measured(results)):
        wanted = f", ±{seen.claim.margin:g}" if seen.claim.margin else ""
        measured = f"{seen.value:+.1f} {seen.claim.unit}"
        text = f"{seen.claim.text} ({seen.claim.about}{wanted})"
        rows.append(("yes" if seen.agrees else "no", measured, text))
    return table_of(["holds", ">measured", "claim of [1], section V"], rows)


def _measured(results: Sequence["Result"]) -> dict["Case", "Measures"]:
    from allocator.lab.experiments.claims import HETERO, STAGED, Case, measures_of

    return {
        Case(
            result.figures.policy,
            result.figures.mode,
            STAGED if result.name.endswith(" staged") else HETERO,
        ): measures_of(result.figures, result.part, result.kinds)
        for result in results
    }
