"""A report as operators read it: one `Share` for each client, and for each role."""

import numpy as np

from allocator.core import Floats, Ints
from allocator.server.reports.report import Report
from allocator.v1 import admin_pb2 as pb
from allocator.v1 import types_pb2


def write_clients(
    state: Report, score: Floats, role: str, fair: Report | None = None
) -> list[pb.Share]:
    """Write the clients of a role and its descendants, the largest share first.

    `score` (n,): of each client of the report.
    `role`: empty: all.
    `fair`: what would be if everything were given out anew, with the same clients.
    """
    fair_share = np.full(len(state.share), np.nan) if fair is None else fair.share
    clients = state.clients
    wanted = _below(state, role)[clients.role]
    rows = np.flatnonzero(wanted)
    rows = rows[np.argsort(-state.weighted_share[rows], kind="stable")]
    dominant = state.dominant_resource(clients.held)
    found = []
    for row in rows.tolist():
        info = clients.info[row]
        found.append(
            pb.Share(
                role=state.roles.path[clients.role[row]],
                framework_id=info.framework_id if info else "",
                framework_name=info.name if info else "",
                active=bool(clients.active[row]),
                suppressed=bool(clients.suppressed[row]),
                weight=float(state.weight[row]),
                share=float(state.share[row]),
                weighted_share=float(state.weighted_share[row]),
                dominant_resource=dominant[row],
                score=float(score[row]),
                held=_quantities(state, clients.held[row]),
                demand=_quantities(state, clients.demand[row]),
                demand_source=clients.demand_source[row],
                agents=int(clients.agents[row]),
                filters=int(clients.filters[row]),
                offered_share=float(state.offered_share[row]),
                offer_age_s=float(clients.offer_age_s[row]),
                waited_cycles=int(clients.waited[row]),
                fair_share=float(fair_share[row]),
                fairness_error=float(state.share[row] - fair_share[row]),
            )
        )
    return found


def write_roles(state: Report, role: str, fair: Report | None = None) -> list[pb.Share]:
    """Write a role and its descendants by path; an empty one: all."""
    roles = state.roles
    fair_share = np.full(len(roles.path), np.nan) if fair is None else fair.role_share
    rows = np.flatnonzero(_below(state, role) & (roles.depth > 0)).tolist()
    dominant = state.dominant_resource(state.role_held)
    return [
        pb.Share(
            role=roles.path[row],
            active=bool(state.role_live[row]),
            weight=float(roles.weight[row]),
            share=float(state.role_share[row]),
            weighted_share=float(state.role_weighted_share[row]),
            dominant_resource=dominant[row],
            score=float("nan"),
            held=_quantities(state, state.role_held[row]),
            filters=int(state.role_filters[row]),
            offered_share=float(state.role_offered_share[row]),
            fair_share=float(fair_share[row]),
            fairness_error=float(state.role_share[row] - fair_share[row]),
        )
        for row in sorted(rows, key=roles.path.__getitem__)
    ]


def _below(state: Report, role: str) -> np.ndarray:
    """Which roles are this one or one of its descendants, (m,) bool."""
    bound = state.roles.bound
    if not role:
        return bound
    inside = [path == role or path.startswith(f"{role}/") for path in state.roles.path]
    return bound & np.array(inside, np.bool_)


def _quantities(state: Report, amounts: Ints) -> types_pb2.Quantities:
    columns = np.flatnonzero(amounts).tolist()
    return types_pb2.Quantities(
        name=[state.resources[column] for column in columns],
        amount=[int(amounts[column]) for column in columns],
    )
