"""What another policy would decide: both are asked about the same copy of the books.

One cycle over what is free now says what the next offers would be; often little is free, so it says
little. Giving the whole cluster out anew says where shares would go in the end.
"""

from typing import NamedTuple

import numpy as np

from allocator.core import Allocator, Detached, Floats, Ints, PolicySpec
from allocator.server.engine import fair_shares
from allocator.server.engine.core_loop import CoreLoop
from allocator.server.reports import report
from allocator.v1 import settings_pb2 as pb

_SAME = 1e-9


class _Outlook(NamedTuple):
    """What one policy would do, by client of the report.

    `offered` (n,): dominant share that the next cycle would offer.
    `agents` (n,): agents that it would offer something of.
    `fair` (n,): dominant share if everything were given out anew.
    """

    offered: Floats
    agents: Ints
    fair: Floats


def compare(
    loop: CoreLoop, copied: Detached, before: PolicySpec, after: PolicySpec
) -> tuple[list[pb.Forecast], int]:
    """Compare two policies, on any thread.

    `loop`: tells how allocators are made.
    `copied`: what `Allocator.copied` gave on the core's thread.
    Returns `forecasts`: clients for which something differs, the largest difference of fair shares
        first; `unaffected`: clients for which nothing does.
    """
    now = _twin(loop, copied, before)
    books = report.read(now)
    one, other = (_outlook(loop, copied, spec) for spec in (before, after))
    gain = np.abs(other.fair - one.fair)
    differs = (
        (gain > _SAME)
        | (np.abs(other.offered - one.offered) > _SAME)
        | (one.agents != other.agents)
    )
    found = []
    for row in np.argsort(-gain, kind="stable").tolist():
        if not differs[row]:
            continue
        info = books.clients.info[row]
        found.append(
            pb.Forecast(
                role=books.roles.path[books.clients.role[row]],
                framework_id=info.framework_id if info else "",
                framework_name=info.name if info else "",
                share=float(books.share[row]),
                offered_now=float(one.offered[row]),
                offered_then=float(other.offered[row]),
                agents_now=int(one.agents[row]),
                agents_then=int(other.agents[row]),
                fair_now=float(one.fair[row]),
                fair_then=float(other.fair[row]),
            )
        )
    return found, int((~differs).sum())


def _twin(loop: CoreLoop, copied: Detached, policy: PolicySpec) -> Allocator:
    """Make an allocator with the copied books that decides by this policy."""
    twin = loop.new_twin(policy)
    twin.suppose(copied, policy)
    return twin


def _outlook(loop: CoreLoop, copied: Detached, policy: PolicySpec) -> _Outlook:
    twin = _twin(loop, copied, policy)
    rows = np.flatnonzero(twin.state.clients.framework)
    before = report.read(twin)
    decisions = twin.allocate(twin.state.now_ms)
    after = report.read(twin)
    # Each decision is one offer of one agent to one client.
    clients = [
        twin.state.clients.row(framework, role)
        for framework, role in zip(
            decisions.framework.tolist(), decisions.role.tolist(), strict=True
        )
    ]
    agents = np.bincount(np.array(clients, np.int64), minlength=len(twin.state.clients.framework))
    fair = fair_shares.deal(loop, policy, copied)
    return _Outlook(after.offered_share - before.offered_share, agents[rows], fair.share)
