"""What must hold whatever goes wrong."""

from allocator.lab.torture.invariants.books import conservation as conservation
from allocator.lab.torture.invariants.books import equal as equal
from allocator.lab.torture.invariants.books import steady as steady
from allocator.lab.torture.invariants.health import Watch as Watch
from allocator.lab.torture.invariants.liveness import Liveness as Liveness
from allocator.lab.torture.invariants.offers import OfferRules as OfferRules
from allocator.lab.torture.invariants.settings import kept as kept
