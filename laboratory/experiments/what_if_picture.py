"""A plot of a recorded day and its variants: use, waits and shares by role."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from laboratory.experiments.what_if import Outcome
from laboratory.reports.plots import bar_of, beside

ROLES_MAX = 12
"""Limit on the roles drawn: those with the largest shares."""


def draw_what_if(path: Path, outcomes: Sequence[Outcome]) -> None:
    """Draw a PNG: a group of bars for each resource, for each role's share, for its wait."""
    first = outcomes[0]
    largest = sorted(first.role_share, key=lambda role: -first.role_share[role])[:ROLES_MAX]
    panels = (
        ("in use (%)", list(first.used), [_percent(each.used) for each in outcomes]),
        ("dominant share (%)", largest, [_percent(each.role_share) for each in outcomes]),
        ("mean wait of a task (s)", largest, [each.role_wait_s for each in outcomes]),
    )
    with beside(path, (14, 4), [title for title, _, _ in panels]) as pictures:
        for axes, (title, labels, values) in zip(pictures, panels, strict=True):
            width, at = 0.8 / len(outcomes), np.arange(len(labels))
            for number, (each, value) in enumerate(zip(outcomes, values, strict=True)):
                heights = [value.get(label, 0.0) for label in labels]
                axes.bar(at + number * width, heights, width, label=each.name, **bar_of(each.name))
            # Escape dollars, which would enclose a formula.
            shown = [label.replace("$", r"\$") for label in labels]
            axes.set_xticks(at + 0.4 - width / 2, shown, rotation=20)
            axes.set_title(title)
        pictures[0].legend()


def _percent(parts: dict[str, float]) -> dict[str, float]:
    return {name: part * 100 for name, part in parts.items()}
