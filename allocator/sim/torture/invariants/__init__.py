"""What must hold whatever goes wrong."""

from allocator.sim.torture.invariants.books import conservation as conservation
from allocator.sim.torture.invariants.books import equal as equal
from allocator.sim.torture.invariants.books import steady as steady
from allocator.sim.torture.invariants.health import Watch as Watch
from allocator.sim.torture.invariants.liveness import Liveness as Liveness
from allocator.sim.torture.invariants.offers import OfferRules as OfferRules
from allocator.sim.torture.invariants.settings import kept as kept
