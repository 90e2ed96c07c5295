"""The master's books add up, and the sidecar's are the same."""

import grpc

from allocator.core import Reason
from allocator.lab.master.emulated import EmulatedMaster
from allocator.lab.random_cluster.books_audit import differences, of_ledger, of_sidecar
from allocator.lab.torture.faults.base import Scene
from allocator.lab.torture.findings import Findings

CONSERVATION = "conservation for each agent"
EQUAL = "equal books on both sides"
STEADY = "no decision that the books forbid"
FACTS_MAX = 10


def conservation(master: EmulatedMaster, findings: Findings) -> None:
    """Count everything anew: what is free and what is held is what there is."""
    wrong = []
    try:
        master.ledger.check()
    except AssertionError as error:
        wrong.append(str(error))
    for agent, row in master.ledger.agents.items():
        wrong += [
            f"agent {agent}: {held} of {each} are held, and it has {has}"
            for each, held, has in zip(
                master.ledger.table.resources, row.held, row.capacity, strict=False
            )
            # An agent that shrank may hold more than it has; then nothing of it may be on offer.
            if held > has and not each.shared and _offered(master, agent, each)
        ]
    findings.check(CONSERVATION, wrong)


def _offered(master: EmulatedMaster, agent: int, resource: object) -> int:
    """How much of a resource of an agent is on offer."""
    table = master.ledger.table.resources
    return sum(
        amount
        for member in master.members.values()
        for offer in member.offers
        if offer.agent == agent
        for each, amount in zip(table, offer.amount, strict=False)
        if each == resource
    )


def steady(master: EmulatedMaster, findings: Findings) -> None:
    """Look at decisions for which nothing that happened meanwhile is an excuse.

    What the gates only made smaller is counted and is no violation. Where agents hold more than
    they have, two right steps, sent as one decision, may look like one that goes beyond a guarantee
    (see the known gaps in the design).
    """
    defects = master.record.defects
    findings.counts["decisions_made_smaller"] += defects.pop(Reason.PARTIAL, 0)
    findings.check(
        STEADY, [f"{count} decisions: {reason.name}" for reason, count in defects.items()]
    )
    for reason in [*master.record.steady]:
        if reason != Reason.OFFERED:
            del master.record.steady[reason]


def equal(scene: Scene) -> None:
    """Compare the books of both sides, number by number, once all is told and applied."""
    master, findings, link = scene.master, scene.rig.findings, scene.link
    # What is said with the second one settles what the first one brought.
    master.settle()
    master.settle()
    session = master.session.number
    if not link.up:
        return
    ours = of_ledger(master.ledger, master.event_heap.now_ms)
    try:
        if scene.rig.status().outstanding_decisions:
            return  # decisions that have not arrived yet are in its books, and not in ours
        theirs = of_sidecar(scene.rig.unix)
    except (ConnectionError, grpc.RpcError):
        return  # stopped, frozen or full
    master.settle()
    # Where the session ended, it has lost its books meanwhile, which the next snapshot mends.
    if master.session.number != session:
        return
    found = differences(ours, theirs, offered=False)
    at = f"at {master.event_heap.now_ms} ms"
    wrong = [f"{at}, {line}" for line in found[:FACTS_MAX]]
    if len(found) > FACTS_MAX:
        wrong.append(f"{at}, {len(found) - FACTS_MAX} more differences")
    findings.counts["facts_compared"] += len(ours)
    findings.check(EQUAL, wrong)
