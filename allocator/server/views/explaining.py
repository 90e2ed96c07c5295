"""Explanations as operators read them; whoever asks waits, the core only copies."""

from allocator import explain
from allocator.near import suggestions
from allocator.server.engine.core_loop import CoreLoop
from allocator.v1 import explain_pb2 as pb
from allocator.v1 import types_pb2

CYCLES_MAX = 256

NAME_SHOWN = 200
"""Characters of a name that there is not, which may be as long as a message."""

SUBJECTS = ("framework", "role", "agent")


def asked_for(request: pb.ExplainRequest) -> tuple[str, str]:
    """Read what is to be explained: of what kind it is, and its name.

    Raises ValueError where it is nothing, or several things.
    """
    named = [(kind, getattr(request, kind)) for kind in SUBJECTS if getattr(request, kind)]
    if len(named) != 1:
        text = "name one framework, role or agent"
        raise ValueError(f"{' and '.join(kind for kind, _ in named) or 'nothing'} is given; {text}")
    if request.cycles > CYCLES_MAX:
        raise ValueError(f"cycles = {request.cycles}: at most {CYCLES_MAX} are kept")
    return named[0]


def take(loop: CoreLoop, kind: str, name: str) -> explain.Picture:
    """Copy what is needed; on the core's thread.

    Raises UnknownSubjectError where there is nobody of that name.
    """
    loop.look()
    return explain.take(loop.allocator, kind, name)


def unknown(error: explain.UnknownSubjectError, *, in_session: bool) -> str:
    """Say that there is nobody of that name, and whose names are near; on any thread."""
    near = "; no master has a session with this sidecar, its module decides meanwhile"
    if in_session:
        near = suggestions(error.name, error.known)
    name = error.name if len(error.name) <= NAME_SHOWN else f"{error.name[:NAME_SHOWN]}..."
    return f"{error.kind} = {name!r}: there is no such {error.kind}{near}"


def answer(picture: explain.Picture, kind: str, name: str, cycles: int) -> pb.ExplainResponse:
    """Explain; on any thread.

    `picture`: taken for this kind and name.
    `cycles`: 0: as many as usual.
    """
    found = explain.explain(picture, kind, name, *([cycles] if cycles else []))
    return pb.ExplainResponse(
        kind=found.kind,
        name=found.name,
        now_ms=found.now_ms,
        verdict=found.verdict,
        notes=found.notes,
        clients=map(_client, found.clients),
        left_out=found.left_out,
        tallies=[
            pb.Tally(
                reason=each.reason,
                cause=each.cause,
                frameworks=each.frameworks,
                examples=each.examples,
            )
            for each in found.tallies
        ],
        quotas=[
            pb.QuotaState(
                role=each.role,
                guarantee=_quantities(each.guarantee),
                limit=_quantities(each.limit),
                consumed=_quantities(each.consumed),
            )
            for each in found.quotas
        ],
        capacity=_quantities(found.capacity or {}),
        free=_quantities(found.free or {}),
        holders=map(_holder, found.holders),
        cycles=map(_cycle, found.cycles),
        set_aside=[
            pb.WordsSetAside(
                said_by=each.said_by, field=each.field, reason=each.reason, text=each.text
            )
            for each in found.set_aside
        ],
    )


def _client(client: explain.ClientAnswer) -> pb.ClientExplanation:
    return pb.ClientExplanation(
        framework_id=client.framework_id,
        framework_name=client.framework,
        role=client.role,
        verdict=client.verdict,
        share=client.share,
        offered_share=client.offered_share,
        demand=_quantities(client.demand),
        demand_source=client.demand_source,
        waited_cycles=client.waited_cycles,
        offered_ms=client.offered_ms,
        agents=client.agents,
        open_agents=client.open,
        largest_free=_quantities(client.largest_free),
        largest_free_agent=client.largest_free_agent,
        blockers=map(_blocker, client.blockers),
        holders=map(_holder, client.holders),
        offers=map(_offer, client.offers),
        cycles=map(_cycle, client.cycles),
    )


def _blocker(blocker: explain.Blocker) -> pb.Blocker:
    return pb.Blocker(
        reason=blocker.reason,
        cause=blocker.cause,
        agents=blocker.agents,
        alone=blocker.alone,
        examples=blocker.examples,
        since_ms=blocker.since_ms,
        until_ms=blocker.until_ms,
        mend=blocker.mend,
    )


def _offer(fate: explain.OfferFate) -> pb.OfferFate:
    return pb.OfferFate(
        cycle=fate.cycle,
        at_ms=fate.at_ms,
        agent=fate.agent,
        amounts=_quantities(fate.amounts),
        outcome=fate.outcome,
        then=fate.then,
        then_ms=fate.then_ms,
        refused_ms=fate.refused_ms,
    )


def _cycle(account: explain.CycleAccount) -> pb.CycleAccount:
    return pb.CycleAccount(
        number=account.number,
        at_ms=account.at_ms,
        whole=account.whole,
        candidates=account.candidates,
        decisions=account.decisions,
        given=map(_given, account.given),
        others=map(_given, account.others),
        blocked=account.blocked,
        losses=map(_loss, account.losses),
        policy_error=account.policy_error,
    )


def _given(given: explain.Given) -> pb.Given:
    return pb.Given(
        framework=given.framework,
        role=given.role,
        agent=given.agent,
        amounts=_quantities(given.amounts),
    )


def _loss(loss: explain.Loss) -> pb.Loss:
    return pb.Loss(
        winner=_standing(loss.winner),
        loser=_standing(loss.loser),
        winner_framework=loss.winner_framework,
        winner_role=loss.winner_role,
        agents=loss.agents,
        examples=loss.examples,
        why=loss.why,
    )


def _standing(standing: explain.Standing) -> pb.Standing:
    return pb.Standing(name=standing.name, score=standing.score, share=standing.share)


def _holder(holder: explain.Holder) -> pb.Holder:
    return pb.Holder(
        framework=holder.framework,
        role=holder.role,
        held=_quantities(holder.held),
        offered=_quantities(holder.offered),
        share=holder.share,
    )


def _quantities(amounts: explain.Amounts) -> types_pb2.Quantities:
    return types_pb2.Quantities(name=list(amounts), amount=list(amounts.values()))
