"""Invariants under every fault: books, offers, settings, liveness, the process and its metrics."""

import http.client
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Mapping, Sequence

import grpc
from prometheus_client.parser import text_string_to_metric_families

from allocator.core import Reason
from allocator.v1 import admin_pb2 as pb
from laboratory.frameworks.base import Offer
from laboratory.master.emulated import EmulatedMaster
from laboratory.master.gates import Decision, QuotaBook, judge
from laboratory.random_cluster.checks import Inspector, differences, of_ledger, of_sidecar
from laboratory.resources import Amount, Resource
from tests.hostile.tenants import Tenant
from tests.server.processes import observer_of
from tests.torture.faults import Scene
from tests.torture.report import TortureFindings
from tests.torture.rig import ANSWER_S, PATIENCE_CYCLES, Rig

# Books: the master's must add up, and the sidecar's must equal them.

CONSERVATION = "conservation for each agent"
EQUAL = "equal books on both sides"
STEADY = "no decision that the books forbid"
FACTS_MAX = 10


def conservation(master: EmulatedMaster, findings: TortureFindings) -> None:
    """Check that free and held amounts of each agent add up to its capacity."""
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
            # An agent that shrank may hold more than its capacity; it must not be on offer then.
            if held > has and not each.shared and _offered(master, agent, each)
        ]
    findings.check(CONSERVATION, wrong)


def _offered(master: EmulatedMaster, agent: int, resource: object) -> int:
    """The amount of an agent's resource that is on offer."""
    table = master.ledger.table.resources
    return sum(
        amount
        for member in master.members.values()
        for offer in member.offers
        if offer.agent == agent
        for each, amount in zip(table, offer.amount, strict=False)
        if each == resource
    )


def steady(master: EmulatedMaster, findings: TortureFindings) -> None:
    """Report rejected decisions, except those that a concurrent event may have outdated.

    Decisions that the gates only reduced are counted, but are not violations.
    """
    defects = master.record.defects
    findings.counts["decisions_made_smaller"] += defects.pop(Reason.PARTIAL, 0)
    told, master.record.rejections = master.record.rejections, []
    counted = [f"{count} decisions: {reason.name}" for reason, count in defects.items()]
    findings.check(STEADY, [f"{each}; {'; '.join(told)}" for each in counted])
    for reason in [*master.record.steady]:
        if reason != Reason.OFFERED:
            del master.record.steady[reason]


def equal(scene: Scene) -> None:
    """Compare the books of both sides, amount by amount, once all events are applied."""
    master, findings, link = scene.master, scene.rig.findings, scene.link
    # The second round acknowledges the decisions that the first one brought.
    master.settle()
    master.settle()
    session = master.session.number
    if not link.up:
        return
    ours = of_ledger(master.ledger, master.event_heap.now_ms)
    try:
        if scene.rig.status().outstanding_decisions:
            return  # the sidecar's books contain decisions that the master has not received
        found = differences(ours, of_sidecar(scene.rig.unix), offered=False)
        count, listed = _listed_agents(scene.rig)
    except (ConnectionError, grpc.RpcError):
        return  # stopped, frozen or out of descriptors
    master.settle()
    # The sidecar drops its books when a session ends; the next snapshot restores them.
    if master.session.number != session:
        return
    at = f"at {master.event_heap.now_ms} ms"
    wrong = [f"{at}, {line}" for line in found[:FACTS_MAX]]
    if len(found) > FACTS_MAX:
        wrong.append(f"{at}, {len(found) - FACTS_MAX} more differences")
    here = {row.info.agent_id for row in master.ledger.agents.values()}
    if count != len(here) or not listed <= here:
        wrong.append(f"{at}, {len(here)} agents here, {count} are listed: {listed - here}")
    findings.counts["facts_compared"] += len(ours)
    findings.check(EQUAL, wrong)


def _listed_agents(rig: Rig) -> tuple[int, set[str]]:
    """Return the number of agents, and ids of some, from a list, which is not read as a dump is."""
    with rig.operator() as sidecar:
        answer = sidecar.ListAgents(pb.ListAgentsRequest(), timeout=ANSWER_S)
    return len(answer.agents) + answer.left_out, {each.agent_id for each in answer.agents}


# Offers: each must be permitted, judged without the module's gates.


class OfferRules(Inspector):
    """Checks every offer once it is booked."""

    name = "offers only to who may have them"

    def __init__(self, master: EmulatedMaster, findings: TortureFindings) -> None:
        super().__init__(master)
        self._findings = findings

    def __call__(self, offers: Sequence[Offer]) -> None:
        super().__call__(offers)
        wrong, self.wrong = self.wrong, []
        self._findings.counts["offers_looked_at"] += len(offers)
        self._findings.check(self.name, wrong)


# Settings: confirmed ones must survive every fault of the process.

NAME = "what operators set is kept"


def kept(rig: Rig) -> None:
    """Compare the limits in force with those that the sidecar confirmed."""
    expected = dict(rig.kept)
    try:
        with rig.operator() as sidecar:
            answer = sidecar.ListRules(pb.ListRulesRequest(kind="limit"), timeout=ANSWER_S)
    except grpc.RpcError:
        return  # stopped, frozen or out of descriptors
    found = {
        limit.role: dict(zip(limit.limit.name, limit.limit.amount, strict=True)).get("cpus")
        for limit in (each.limit for each in answer.rules)
    }
    wrong = [
        f"the limit of {role}: {found.get(role)} now, {cpus} when it was set"
        for role, cpus in expected.items()
        if found.get(role) != cpus
    ]
    rig.findings.check(NAME, wrong)


# The process: bounded resources, no errors in its log.

EVERY_S = 1.0
RSS_MIB_MAX = 900.0
"""Memory limit with a dozen agents, including compiled loops and all policies."""

GROWTH_MIB_MAX = 250.0
"""Maximum growth, counted from one minute after the process became ready."""

WARM_S = 60.0
DESCRIPTORS_MAX = 300
THREADS_MAX = 150
LOG_BYTES_A_MINUTE_MAX = 2 * 2**20


class Watch:
    """Checks the process once a second, in a separate thread."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self._metrics = Metrics(rig)
        self._over = threading.Event()
        self._life = 0
        self._warm_mib = 0.0
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_error: object) -> None:
        self._over.set()
        self._thread.join()
        self.look()

    def look(self) -> None:
        rig, findings = self._rig, self._rig.findings
        code = rig.sidecar.died()
        if code is not None:
            tail = rig.sidecar.meter.tail()
            findings.check("alive", [f"it ended by itself, with exit code {code}\n{tail}"])
            rig.sidecar.start()
            return
        findings.check("alive", [])
        findings.check("no trace of a defect in the log", rig.sidecar.meter.traces())
        minute = rig.sidecar.meter.minute_bytes_max
        rig.sidecar.meter.minute_bytes_max = 0
        findings.at_most("log_bytes_a_minute_max", minute)
        wrong = [f"{minute} bytes within a minute"] if minute > LOG_BYTES_A_MINUTE_MAX else []
        findings.check("no flood of logs", wrong)
        if rig.sidecar.wanted:
            self._bounds()
            self._metrics.look()

    def _bounds(self) -> None:
        rig, findings = self._rig, self._rig.findings
        rss_mib, _, threads, descriptors = rig.sidecar.figures()
        if not threads:
            return
        age_s = rig.sidecar.age_s
        findings.sample(age_s, rss_mib, descriptors, threads)
        if rig.sidecar.lives != self._life:
            self._life, self._warm_mib = rig.sidecar.lives, 0.0
        if not self._warm_mib and age_s >= WARM_S:
            self._warm_mib = rss_mib
        wrong = []
        if rss_mib > RSS_MIB_MAX:
            wrong.append(f"{rss_mib:.0f} MiB are more than {RSS_MIB_MAX:.0f}")
        if self._warm_mib and rss_mib - self._warm_mib > GROWTH_MIB_MAX:
            wrong.append(f"from {self._warm_mib:.0f} MiB to {rss_mib:.0f} in {age_s:.0f} s")
            self._warm_mib = rss_mib
        if descriptors > DESCRIPTORS_MAX:
            wrong.append(f"{descriptors} descriptors are more than {DESCRIPTORS_MAX}")
        if threads > THREADS_MAX:
            wrong.append(f"{threads} threads are more than {THREADS_MAX}")
        findings.check("bounded memory, threads and descriptors", wrong)

    def _run(self) -> None:
        while not self._over.wait(EVERY_S):
            begun_s = time.monotonic()
            self.look()
            took_ms = int((time.monotonic() - begun_s) * 1000)
            self._rig.findings.at_most("watch_ms_max", took_ms)


# Liveness: a client that can be served must be served within a bounded number of cycles.

CYCLES_MAX = 6 * PATIENCE_CYCLES
"""Limit on the consecutive full cycles that give a client no offer while an agent suits it."""

Client = tuple[int, int]


class Liveness:
    """Finds, after each cycle over all agents, clients that wait although an agent suits them."""

    name = "who can be served is served"

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._waited: Counter[Client] = Counter()
        self._served = scene.link.served

    def look(self) -> None:
        """Check once; cycles without the sidecar do not count."""
        link, findings = self._scene.link, self._scene.rig.findings
        before, self._served = self._served, link.served
        if not link.up:
            self._waited.clear()
            return
        if link.served == before:
            return
        master = self._scene.master
        quotas = QuotaBook(master.ledger)
        waiting = {client for client in _clients(master) if self._could_have(client, quotas)}
        self._waited = Counter({client: self._waited[client] + 1 for client in waiting})
        findings.at_most("longest_wait_cycles", max(self._waited.values(), default=0))
        wrong = [
            f"{self._who(client)} got nothing in {cycles} cycles, though something it could"
            f" have was free after each of them (at {master.event_heap.now_ms} ms)"
            for client, cycles in self._waited.items()
            if cycles == CYCLES_MAX
        ]
        findings.check(self.name, wrong)

    def _who(self, client: Client) -> str:
        framework, role = client
        identity = self._scene.master.members[framework].framework.identity
        return f"{identity.name} in role {self._scene.master.ledger.path[role]}"

    def _could_have(self, client: Client, quotas: QuotaBook) -> bool:
        """Whether some agent has room for one of its tasks; without a demand, any room will do."""
        master = self._scene.master
        framework, role = client
        demand = master.members[framework].framework.identity.demand
        kinds = master.ledger.kinds
        need = kinds.by_kind(_plain(master, demand))
        for agent in master.ledger.agents:
            free = kinds.by_kind(master.ledger.available(agent))
            wish = _row(need, len(free)) if demand else free
            if not any(wish):
                continue
            decision = Decision(framework, role, agent, tuple(range(len(free))), wish)
            following = master.session.sequence + 1
            now_ms = master.event_heap.now_ms
            verdict = judge(master.ledger, decision, following, now_ms, quotas)
            given = kinds.by_kind(verdict.amount) if any(verdict.amount) else ()
            enough = all(a >= b for a, b in zip(_row(given, len(wish)), wish, strict=True))
            if given and (enough or not demand):
                return True
        return False


def _row(amount: Amount, width: int) -> Amount:
    return tuple(amount[:width]) + (0,) * (width - len(amount))


def _plain(master: EmulatedMaster, demand: Mapping[str, int]) -> Amount:
    """The unreserved part of a demand, by resource."""
    return tuple(
        demand.get(each.name, 0) if each == Resource(each.name, scalar=each.scalar) else 0
        for each in master.ledger.table.resources
    )


def _clients(master: EmulatedMaster) -> list[Client]:
    """Clients without offers that should get some; hostile tenants need not.

    A learned demand is known to the sidecar only, so a client that declared none counts as one
    without a demand; `CYCLES_MAX` leaves room for this difference.
    """
    ledger = master.ledger
    if ledger.holds_back:
        return []
    return [
        (handle, role)
        for handle, row in ledger.frameworks.items()
        if row.active
        and handle in master.members
        and not isinstance(master.members[handle].framework, Tenant)
        for role in sorted(row.roles - row.suppressed)
        if not any(offer.role == role for offer in master.members[handle].offers)
    ]


# Metrics: they must agree with the status.

LINES_MAX = 20_000
"""Maximum lines of a page, whatever the names in the cluster and their number."""

QUEUE_MAX = 200
"""Maximum commands queued for the core's thread: a few from each stream and operator."""

_PREFIX = "mesos_allocator_"

Samples = Mapping[tuple[str, tuple[tuple[str, str], ...]], float]


class Metrics:
    """Scrapes metrics between two status requests; compares them if both statuses agree."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self._life: tuple[int, int | None] = 0, None
        self._counters: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}

    def look(self) -> None:
        """Check once; skipped while the process is frozen, stopped or out of descriptors."""
        rig, life = self._rig, self._processes()
        try:
            before = rig.status()
            samples = self._scrape()
            after = rig.status()
        except (OSError, http.client.HTTPException, urllib.error.URLError, grpc.RpcError):
            return
        if self._processes() != life or not rig.sidecar.wanted:
            return
        if life != self._life:
            self._life, self._counters = life, {}
        wrong = self._falling(samples)
        if _moment(before) == _moment(after):
            wrong += _differing(samples, after)
            rig.findings.counts["scrapes_compared"] += 1
        rig.findings.check("metrics are those of the state", wrong)
        differences = samples.get(("observer_differences_total", ()), 0.0)
        wrong = [f"{differences:.0f} decisions came out otherwise"] if differences else []
        rig.findings.check("the observer decides the same", wrong)
        depth = samples.get(("core_queue_depth", ()), 0.0)
        rig.findings.at_most("core_queue_max", int(depth))
        wrong = [f"{depth:.0f} commands wait for the core"] if depth > QUEUE_MAX else []
        rig.findings.check("bounded queues", wrong)

    def _processes(self) -> tuple[int, int | None]:
        """Identity of the sidecar and its observer; a restart of either resets counters."""
        return self._rig.sidecar.lives, observer_of(self._rig.sidecar.pid)

    def _scrape(self) -> Samples:
        text = self._page("metrics")
        lines = {"/metrics": text.count("\n"), "/": self._page("").count("\n")}
        wrong = [f"{page} has {n} lines" for page, n in lines.items() if n > LINES_MAX]
        self._rig.findings.check("pages stay short", wrong)
        return {
            (sample.name.removeprefix(_PREFIX), tuple(sorted(sample.labels.items()))): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    def _page(self, name: str) -> str:
        url = f"http://127.0.0.1:{self._rig.http_port}/{name}"
        with urllib.request.urlopen(url, timeout=ANSWER_S) as answer:
            return answer.read().decode()

    def _falling(self, samples: Samples) -> list[str]:
        """Find counters that fell although the process has not restarted."""
        now = {
            (name, labels): value
            for (name, labels), value in samples.items()
            # The module's counters restart with the next master.
            if name.endswith("_total") and not name.startswith("module_")
        }
        wrong = [
            f"{name}{dict(labels)} fell from {self._counters[name, labels]} to {value}"
            for (name, labels), value in now.items()
            if value < self._counters.get((name, labels), 0.0)
        ]
        self._counters = now
        return wrong


def _moment(status: pb.GetStatusResponse) -> tuple[object, ...]:
    """The fields that change with every event that the core applies."""
    return (status.sidecar_id, status.sessions, status.sequence, status.events, status.cycles)


def _differing(samples: Samples, status: pb.GetStatusResponse) -> list[str]:
    if samples.get(("report_age_seconds", ()), 0.0) > 0.0:
        return []  # the core was busy, so these are older values, marked by their age

    def summed(name: str) -> float:
        return sum(value for (each, _), value in samples.items() if each == name)

    told = {
        "agents": status.agents,
        "frameworks": status.frameworks,
        "filters": status.filters,
        "decisions_outstanding": status.outstanding_decisions,
        "in_session": float(status.in_session),
        "cycles_total": status.cycles,
        "decisions_total": status.decisions,
    }
    return [
        f"{name}: {scraped} in the metrics, {asked} in the status"
        for name, asked in told.items()
        if (scraped := summed(name)) != asked
    ]
