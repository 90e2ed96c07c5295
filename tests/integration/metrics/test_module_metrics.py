"""The figures that a module reports, in a real scrape of a real sidecar."""

import pytest

from allocator.v1 import session_pb2 as pb
from allocator.wire.codec.figures import ModuleFigures, write_figures
from laboratory.links.stream import StreamLink
from laboratory.workloads.play import play
from laboratory.workloads.spark_experiment import experiment
from tests.integration.metrics.scraped import CLUSTER
from tests.server.metrics.scraping import Samples, value
from tests.server.sidecar_process import GrpcModule, SidecarProcess

FIGURES = ModuleFigures(
    cycles=50,
    fallback_cycles=5,
    fallback_offers=7,
    fallback_since_ms=1500,
    fallback_until_ms=4000,
    breaker_trips=1,
    outcomes={"offered": 90, "malformed": 3},
    ends={"silent": 2},
    round_trip_p99_us=2500,
    shadow=True,
    shadow_offers=20,
    shadow_same=12,
    shadow_other=4,
)


def of_modules(found: Samples) -> set[object]:
    """The series of modules."""
    return {series for series in found if series[0].startswith("module_")}


def test_figures_of_a_module_are_shown_during_its_session():
    with SidecarProcess() as process:
        assert not of_modules(process.scraped())
        channel = process.channel()
        module = GrpcModule(channel).begin(CLUSTER)
        module.batch()
        assert not of_modules(process.scraped()), "an older one says nothing, and is served"
        module.batch(figures=write_figures(FIGURES))
        found = process.scraped()
        assert value(found, "module_cycles_total") == 50
        assert value(found, "module_fallback_offers_total") == 7
        assert value(found, "module_fallback_last_seconds") == 2.5
        assert value(found, "module_fallback_active") == 0
        assert value(found, "module_outcomes_total", reason="malformed") == 3
        assert value(found, "module_outcomes_total", reason="stale") == 0
        assert value(found, "module_session_ends_total", end="silent") == 2
        assert value(found, "module_round_trip_seconds", part="p99") == 0.0025
        assert value(found, "module_shadow") == 1
        assert value(found, "module_shadow_offers_total") == 20
        assert value(found, "module_shadow_decisions_total", given="same") == 12
        assert value(found, "module_shadow_decisions_total", given="none") == 0
        module.batch()
        assert value(process.scraped(), "module_cycles_total") == 50, "the last that it said"
        # For any input of a module, the number of series is the same, and its session continues.
        nonsense = pb.ModuleFigures(cycles=2**64 - 1, outcomes=[2**64 - 1] * 1000, ends=[9] * 1000)
        nonsense.fallback_since_ms = -(2**63)
        module.batch(figures=nonsense)
        again = process.scraped()
        assert of_modules(again) == of_modules(found)
        module.leave()
        list(module.heard())
        process.await_said("session closed")
        assert not of_modules(process.scraped())
        channel.close()


@pytest.mark.long
def test_the_emulated_master_says_it_too():
    with SidecarProcess() as process:
        heard: list[Samples] = []
        scenario = experiment(3, jobs=1)

        class Watched(StreamLink):
            def exchange(self, batch):
                answer = super().exchange(batch)
                if batch.figures is not None:
                    heard.append(process.scraped())
                return answer

        played = play(scenario, Watched(process.targets[0]), tell_demand=True)
        assert len(heard) >= 2
        offered = [value(each, "module_outcomes_total", reason="offered") for each in heard]
        assert offered == sorted(offered)
        assert 0 < offered[-1] <= played.record.outcomes.total()
        assert value(heard[-1], "module_sessions_total") == 1
