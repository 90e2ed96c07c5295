"""Computes what quotas leave to a client, and reduces it by grants."""

from allocator.core.snapshot import UNBOUNDED, Bounds
from allocator.policies.filling.scene.compiled import compiled, hot
from allocator.policies.filling.scene.loop_arrays import Offer, Rule
from allocator.policies.filling.scene.scoring import GUARANTEED


@hot
def ceiling_below(rule: Rule, bounds: Bounds, bound: int, r: int) -> int:
    """Return the most of a resource that quotas allow under a bound; a bound of -1: none."""
    if not rule.bounded:
        return UNBOUNDED
    # The smallest limit of the bound and those above it applies. Their largest unmet guarantee is
    # what is kept free for the clients below.
    ceiling = UNBOUNDED
    owed = 0
    while bound >= 0:
        ceiling = min(ceiling, bounds.left[bound, r])
        owed = max(owed, bounds.owed[bound, r])
        bound = bounds.above[bound]
    # Grant nothing that is kept free for others. In the guarantee stage a client may also use what
    # is kept free for its own roles.
    if keeps_back(bounds):
        surplus = max(bounds.available[r] - bounds.required[r], 0)
        ceiling = min(ceiling, surplus + owed if rule.stage == GUARANTEED else surplus)
    return max(ceiling, 0)


@hot
def keeps_back(bounds: Bounds) -> bool:
    """Whether anything must stay free for guarantees."""
    for r in range(len(bounds.required)):
        if bounds.required[r] > 0:
            return True
    return False


@compiled
def raise_ceiling(rule: Rule, bounds: Bounds, offer: Offer, client: int) -> None:
    """Compute the most that a client may be granted of each resource that counts against quota."""
    for r in range(len(offer.ceiling)):
        offer.ceiling[r] = ceiling_below(rule, bounds, bounds.of_client[client], r)
    for i in range(bounds.further.shape[1]):
        row = bounds.further[client, i]
        for r in range(len(offer.ceiling) if row >= 0 else 0):
            offer.ceiling[r] = max(min(offer.ceiling[r], bounds.left[row, r]), 0)


@compiled
def makes_progress(bounds: Bounds, offer: Offer, client: int) -> bool:
    """Whether the offer brings the client's role, or an ancestor, nearer to its guarantee."""
    bound = bounds.of_client[client]
    while bound >= 0:
        for r in range(len(offer.bounded)):
            if offer.bounded[r] > 0 and bounds.owed[bound, r] > 0:
                return True
        bound = bounds.above[bound]
    return False


@compiled
def is_owed(bounds: Bounds, client: int) -> bool:
    bound = bounds.of_client[client]
    while bound >= 0:
        for r in range(bounds.owed.shape[1]):
            if bounds.owed[bound, r] > 0:
                return True
        bound = bounds.above[bound]
    return False


@compiled
def charge(bounds: Bounds, offer: Offer, stage: int, client: int) -> None:
    """Charge an offer to the client's bounds, and to what must stay free for guarantees."""
    for r in range(len(offer.bounded)):
        amount = offer.bounded[r]
        # The client counts against its role and all ancestors; `owed` is their largest unmet
        # guarantee.
        owed = 0
        bound = bounds.of_client[client]
        while bound >= 0:
            bounds.left[bound, r] -= amount
            owed = max(owed, bounds.owed[bound, r])
            bounds.owed[bound, r] = max(bounds.owed[bound, r] - amount, 0)
            bound = bounds.above[bound]
        for i in range(bounds.further.shape[1]):
            if bounds.further[client, i] >= 0:
                bounds.left[bounds.further[client, i], r] -= amount
        bounds.available[r] -= amount
        # Only grants of the guarantee stage reduce what must stay free; others come from the
        # surplus.
        if stage == GUARANTEED:
            bounds.required[r] -= min(owed, amount)
