"""Small clusters, and what one scrape reports about them."""

from prometheus_client import CollectorRegistry, generate_latest

from allocator.core import Allocator, Hold, PolicySpec
from allocator.server.metrics.family import Parts
from allocator.server.metrics.state_families import Scrape, state_parts
from allocator.server.reports import report
from allocator.v1 import records_pb2 as pb
from allocator.wire import SessionCounts
from tests.server.metrics.scraping import Samples, samples
from tests.world.rows import holdings
from tests.world.world import World

GIB = 1024 * 1000  # thousandths of a MiB


def nsdi(*, flat: bool = True, **settings) -> Allocator:
    """9 CPUs and 18 GB on two agents; A uses 3 and 12, B uses 6 and 2 (NSDI 2011, sec. 4.1)."""
    world = World(PolicySpec("drf", flat=flat), settings=settings)
    world.bind("cpus", "mem", roles=("eng", "ops", "eng/ads"))
    first, second = world.agent("cpus:5;mem:10240"), world.agent("cpus:4;mem:8192")
    a = world.framework("eng/ads", framework_id="id-A", name="A")
    b = world.framework("ops", framework_id="id-B", name="B")
    world.weights(**{"eng": 2.0, "eng/ads": 4.0})
    world.hold(a, "eng/ads", first, "cpus:3;mem:10240")
    world.hold(a, "eng/ads", second, "mem:2048")
    world.hold(b, "ops", second, "cpus:4;mem:2048")
    world.hold(b, "ops", first, "cpus:2")
    return world.allocator


FIGURES = pb.Figures(
    # Three cycles of up to 0.1 s, and a longer one than all bounds.
    cycle_times=pb.CycleTimes(buckets=[0] * 6 + [3] + [0] * 5 + [1], total_s=1.5),
    journal=pb.JournalFigures(errors=2),
    sessions=3,
)


def scrape(
    allocator: Allocator, counts: SessionCounts | None = None, *, frameworks_max=100, roles_max=100
) -> Samples:
    taken = Scrape(
        report=report.read(allocator),
        counts=counts or SessionCounts(),
        figures=FIGURES,
        rules={},
        filters_forgotten=0,
        in_session=True,
        age_s=0.25,
    )
    registry = CollectorRegistry()
    limits = {"frameworks_max": frameworks_max, "roles_max": roles_max}
    registry.register(Parts([lambda: state_parts(lambda: taken, **limits)]))
    return samples(generate_latest(registry).decode())


def crowd(frameworks: int, roles: int) -> Allocator:
    """Frameworks; each holds its number in thousandths of a CPU, in role number % roles."""
    world = World()
    world.bind("cpus", "mem", roles=[f"role{role}" for role in range(roles)])
    world.agent("cpus:1000000;mem:1000000")
    for number in range(1, frameworks + 1):
        role = f"role{number % roles}"
        world.framework(role, framework_id=f"id-{number}", name="same for all")
    rows = [(each, 1 + each % roles, 1, each, 0) for each in range(1, frameworks + 1)]
    world.tell(Hold(holdings(*rows)))
    return world.allocator
