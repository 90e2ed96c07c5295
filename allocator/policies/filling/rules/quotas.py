"""What quotas leave to a client, and how a grant lessens it."""

from allocator.core.snapshot import UNBOUNDED, Bounds
from allocator.policies.filling.scene.compiled import compiled, hot
from allocator.policies.filling.scene.loop_arrays import Offer, Rule
from allocator.policies.filling.scene.scoring import GUARANTEED


@hot
def ceiling_below(rule: Rule, bounds: Bounds, bound: int, r: int) -> int:
    """Return the most of a resource that quotas let be given below a bound; -1: below none."""
    if not rule.bounded:
        return UNBOUNDED
    # The smallest limit on the way up bounds it; the largest unmet guarantee there says how much is
    # kept back on behalf of those below.
    ceiling = UNBOUNDED
    owed = 0
    while bound >= 0:
        ceiling = min(ceiling, bounds.left[bound, r])
        owed = max(owed, bounds.owed[bound, r])
        bound = bounds.above[bound]
    # What may be given without touching what is kept back for others. Who is owed something may
    # use what is kept back for it as well.
    if keeps_back(bounds):
        surplus = max(bounds.available[r] - bounds.required[r], 0)
        ceiling = min(ceiling, surplus + owed if rule.stage == GUARANTEED else surplus)
    return max(ceiling, 0)


@hot
def keeps_back(bounds: Bounds) -> bool:
    """Say whether anything has to stay free for guarantees."""
    for r in range(len(bounds.required)):
        if bounds.required[r] > 0:
            return True
    return False


@compiled
def raise_ceiling(rule: Rule, bounds: Bounds, offer: Offer, client: int) -> None:
    """Work out the most that a client may be given of what counts against quota."""
    own = bounds.of_framework[client]
    for r in range(len(offer.ceiling)):
        offer.ceiling[r] = ceiling_below(rule, bounds, bounds.of_client[client], r)
        if own >= 0:
            offer.ceiling[r] = max(min(offer.ceiling[r], bounds.left[own, r]), 0)


@compiled
def makes_progress(bounds: Bounds, offer: Offer, client: int) -> bool:
    """Say whether the offer brings anybody above the client nearer to a guarantee."""
    # The client's role, then every role above it.
    bound = bounds.of_client[client]
    while bound >= 0:
        for r in range(len(offer.bounded)):
            if offer.bounded[r] > 0 and bounds.owed[bound, r] > 0:
                return True
        bound = bounds.above[bound]
    return False


@compiled
def is_owed(bounds: Bounds, client: int) -> bool:
    """Say whether a guarantee above the client is not reached yet."""
    bound = bounds.of_client[client]
    while bound >= 0:
        for r in range(bounds.owed.shape[1]):
            if bounds.owed[bound, r] > 0:
                return True
        bound = bounds.above[bound]
    return False


@compiled
def charge(bounds: Bounds, offer: Offer, stage: int, client: int) -> None:
    """Lessen what quotas leave to the client, and what they keep back."""
    for r in range(len(offer.bounded)):
        amount = offer.bounded[r]
        # The client counts against its own role and every role above it. `owed` is the largest
        # guarantee along the way that is not reached yet.
        owed = 0
        bound = bounds.of_client[client]
        while bound >= 0:
            bounds.left[bound, r] -= amount
            owed = max(owed, bounds.owed[bound, r])
            bounds.owed[bound, r] = max(bounds.owed[bound, r] - amount, 0)
            bound = bounds.above[bound]
        # A framework may have a bound of its own, beside those of the roles.
        own = bounds.of_framework[client]
        if own >= 0:
            bounds.left[own, r] -= amount
        bounds.available[r] -= amount
        # What goes to a guarantee need not be kept free for it any more. In other stages grants
        # come out of the surplus, and what is kept back stays as it is.
        if stage == GUARANTEED:
            bounds.required[r] -= min(owed, amount)
