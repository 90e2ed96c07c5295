"""One run of a scenario on a real sidecar under one policy, and what is kept of it."""

from collections.abc import Callable
from dataclasses import dataclass

from allocator.core import Floats, PolicySpec
from allocator.lab.experiments.play import Played, play
from allocator.lab.links.sidecar_process import set_policy
from allocator.lab.links.stream import StreamLink
from allocator.lab.links.tokens import SESSION_TOKEN_FILE, read_token
from allocator.lab.reports.run_report import Figures, figures, sampled
from allocator.lab.workloads.scenario import Progress, Scenario

CHARACTERISED = "characterised"


@dataclass(frozen=True, slots=True)
class Run:
    """What to play, under which policy."""

    name: str
    policy: PolicySpec
    seed: int
    scenario: Scenario


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a run.

    time_s, part (T,) (T, R): allocated part of each resource, every second.
    memory_mib: the most that the sidecar had resident during the run; 0 where it is not ours.
    """

    name: str
    figures: Figures
    kinds: tuple[str, ...]
    time_s: Floats
    part: Floats
    memory_mib: float = 0.0


def play_on(
    run: Run,
    target: str,
    watch: Callable[[Progress], None] | None = None,
    *,
    started_us: int = 1,
) -> Played:
    """Play a run on a sidecar that serves at `target`.

    started_us: when our master began to lead: the newer of two has the sidecar.
    """
    set_policy(target, run.policy)
    tell_demand = run.policy.mode == CHARACTERISED
    link = StreamLink(target, started_us, read_token(SESSION_TOKEN_FILE))
    return play(run.scenario, link, tell_demand=tell_demand, watch=watch)


def result_of(run: Run, played: Played) -> Result:
    """Keep of a run what is small."""
    numbers = figures(played, run.policy.name, run.policy.mode, run.seed)
    kinds = played.master.ledger.names
    return Result(run.name, numbers, kinds, *sampled(played))
