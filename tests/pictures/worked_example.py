"""The worked example of unequal agents: use under two policies, computed by the policies.

The cluster is the one of `docs/explanation/policies.md`.
"""

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from allocator.core import PolicySpec
from allocator.policies import build
from allocator.testing import placement, static_snapshot

CAPACITY = np.array([[100, 30], [30, 100]])
DEMAND = np.array([[5, 1], [1, 5]])
RESOURCES = ("CPUs", "memory")
COLOURS = ("#0072b2", "#e69f00")
POLICIES = {"drf": "DRF", "ps-dsf": "PS-DSF"}


def draw(path: Path) -> None:
    """Draw a panel for each policy: a bar for each resource of each agent, a colour a client."""
    cluster = static_snapshot(capacity=CAPACITY, demand=DEMAND)
    # Makes the file the same, byte for byte, each time.
    with mpl.rc_context({"font.size": 10, "svg.hashsalt": "policies", "svg.fonttype": "none"}):
        figure = Figure(figsize=(8.6, 2.7), layout="constrained")
        figures = figure.subplots(1, len(POLICIES), sharey=True)
        names = [f"agent {agent + 1}\n{name}" for agent in range(2) for name in RESOURCES]
        for axes, (policy, title) in zip(figures, POLICIES.items(), strict=True):
            spec = PolicySpec(policy, mode="characterised")
            tasks = placement(cluster, build(spec).allocate(cluster, seed=0))
            below = np.zeros(len(names))
            for client, colour in enumerate(COLOURS):
                used = tasks[client][:, None] * DEMAND[client] / CAPACITY * 100
                label = f"client {'AB'[client]}"
                axes.bar(names, used.ravel(), bottom=below, color=colour, label=label, width=0.7)
                below += used.ravel()
            axes.set(title=f"{title}: {tasks.sum()} tasks", ylim=(0, 105))
            axes.spines[["top", "right"]].set_visible(False)
        figures[0].set_ylabel("in use (%)")
        figures[1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
        figure.savefig(path, metadata={"Date": None})
    lines = path.read_text("utf-8").splitlines()
    path.write_text("\n".join(line.rstrip() for line in lines) + "\n", encoding="utf-8")
