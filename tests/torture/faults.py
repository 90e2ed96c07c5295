"""The faults that torture injects, one function each.

`FAULTS` is drawn from by weight; faults that take long have a low weight.
"""

import json
import os
import resource
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import grpc
from google.protobuf.message import Message

from allocator.core import MILLI, Define, Kind, Options, PlanningPolicy, PolicySpec
from allocator.policies import MODES, POLICIES, build
from allocator.v1 import admin_pb2, explain_pb2, settings_pb2, types_pb2
from allocator.v1 import session_pb2 as pb
from laboratory.links.base import Batch, LinkDownError, Opening
from laboratory.links.sidecar_process import channel
from laboratory.master.emulated import EmulatedMaster
from laboratory.module_protocol import SessionEndedError
from tests.hostile.crew import CREW
from tests.hostile.tenants import Tenants
from tests.rule_changes import rule_change
from tests.server.processes import lowest_free_descriptor, observer_of
from tests.torture.link import PatientLink, TorturedLink
from tests.torture.rig import ANSWER_S, Rig, SidecarGoneError
from tests.torture.wires import Proxy, dial_tcp


@dataclass
class Scene:
    """What a fault acts on: the rig, and the master of the world that is being played.

    later: schedules a call after some milliseconds of world time, at the end of the world at the
        latest.
    """

    rig: Rig
    master: EmulatedMaster
    link: TorturedLink
    started_us: int
    later: Callable[[int, Callable[[], None]], None]

    def afterwards(self, between_s: tuple[float, float], undo: Callable[[], None]) -> None:
        """Undo something after some real time, since world time stops while the master waits."""
        timer = threading.Timer(self.rig.chance.uniform(*between_s), undo)
        timer.daemon = True
        timer.start()

    def soon(self, least_ms: int, most_ms: int) -> int:
        return self.rig.chance.randint(least_ms, most_ms)


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of fault.

    weight: probability relative to the other faults.
    possible: whether this machine can inject it.
    strike: injects it, and checks its immediate effects.
    """

    name: str
    weight: int
    possible: Callable[[Rig], bool]
    strike: Callable[[Scene], None]


FAULTS: list[Fault] = []
"""Every fault, in order of definition."""


def fault(
    name: str, weight: int, possible: Callable[[Rig], bool] = lambda _rig: True
) -> Callable[[Callable[[Scene], None]], Fault]:
    """Register a function in `FAULTS`."""

    def made(strike: Callable[[Scene], None]) -> Fault:
        FAULTS.append(Fault(name, weight, possible, strike))
        return FAULTS[-1]

    return made


def has_cable(rig: Rig) -> bool:
    return rig.cable is not None


CUT_OFF = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
)
"""Status codes of a process that was stopped or is out of descriptors."""

NO_ANSWER = (*CUT_OFF, grpc.StatusCode.DEADLINE_EXCEEDED)
"""Acceptable status codes of a missing answer; the deadline passes if the process is frozen."""


# Faults of the process.

FREEZE_S = (0.05, 2.5)
ABSENCE_S = (0.0, 1.0)
PLANNING_S = (0.0, 0.5)
"""Delays to draw from, so that a fault hits any stage of a plan: copy, computation, adoption."""

OBSERVER_S = 60.0
"""Limit on unanswered questions, on a busy machine with other faults active."""

ANSWERED = "questions are answered again"
AHEAD_S = (-40 * 86_400.0, -7_200.0, -90.0, -0.5, 0.5, 90.0, 7_200.0, 40 * 86_400.0)
CLOCK_MS = (500, 8_000)


@fault("kill -9", 2)
def kill(scene: Scene) -> None:
    """SIGKILL, and a restart after a while."""
    scene.rig.sidecar.kill()
    restart(scene)


@fault("terminate and restart", 2)
def terminate(scene: Scene) -> None:
    """SIGTERM, which must exit with code 0, and a restart."""
    code = scene.rig.sidecar.terminate()
    wrong = [] if code == 0 else [f"SIGTERM: exit code {code}\n{scene.rig.sidecar.meter.tail()}"]
    scene.rig.findings.check("ends in order", wrong)
    restart(scene)


@fault("freeze", 6)
def freeze(scene: Scene) -> None:
    """SIGSTOP, then SIGCONT after a time below or above any timeout."""
    sidecar = scene.rig.sidecar
    sidecar.signal(signal.SIGSTOP)
    scene.afterwards(FREEZE_S, lambda: sidecar.signal(signal.SIGCONT))


@fault("observer killed", 3)
def kill_observer(scene: Scene) -> None:
    """SIGKILL to the observer, which answers questions; its replacement must answer soon."""
    rig = scene.rig
    if _signal_observer(rig, signal.SIGKILL):
        rig.begin(partial(_await_answer, rig, rig.sidecar.lives))


@fault("observer killed over a plan", 3)
def kill_planner(scene: Scene) -> None:
    """SIGKILL to the observer during a plan: the plan is lost, decisions continue."""
    _set_planning_policy(scene)
    kill_observer.strike(scene)


@fault("killed as a plan comes", 2)
def kill_planned(scene: Scene) -> None:
    """SIGKILL to the deciding process soon after a planning policy is set."""
    _set_planning_policy(scene)
    kill.strike(scene)


def _set_planning_policy(scene: Scene) -> None:
    """Set a policy that plans, and wait a random time so that the plan reaches any stage."""
    chance = scene.rig.chance
    specs = (PolicySpec(name, mode=chance.choice(MODES)) for name in sorted(POLICIES))
    spec = chance.choice([each for each in specs if isinstance(build(each), PlanningPolicy)])
    policy = settings_pb2.Policy(name=spec.name, mode=spec.mode)
    wrong = _ask(scene, "SetPolicy", admin_pb2.SetPolicyRequest(policy=policy))
    scene.rig.findings.check("operators are answered", wrong)
    time.sleep(chance.uniform(*PLANNING_S))


@fault("observer frozen", 3)
def freeze_observer(scene: Scene) -> None:
    """SIGSTOP, then SIGCONT to the observer: decisions continue, and it catches up."""
    pid = _signal_observer(scene.rig, signal.SIGSTOP)

    def thaw() -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)

    if pid:
        scene.afterwards(FREEZE_S, thaw)


def _signal_observer(rig: Rig, number: int) -> int:
    """Send the observer a signal; returns its process id, 0 if it does not run."""
    pid = observer_of(rig.sidecar.pid)
    if pid is None:
        return 0
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return 0
    return pid


def _await_answer(rig: Rig, life: int) -> None:
    """Ask until an answer arrives or the sidecar is stopped."""
    until_s = rig.sidecar.clock.now_s + OBSERVER_S
    why = ""
    while rig.sidecar.wanted and rig.sidecar.lives == life:
        try:
            rig.status()
        except grpc.RpcError as error:
            why = f"{error.code()}: {error.details()}"
        else:
            rig.findings.check(ANSWERED, [])
            return
        if rig.sidecar.clock.now_s > until_s:
            rig.findings.check(ANSWERED, [f"not within {OBSERVER_S:.0f} s: {why}"])
            return
        time.sleep(0.1)


@fault("clock set", 4)
def set_clock(scene: Scene) -> None:
    """The wall clock jumps, and later returns; no timer may be affected."""
    rig = scene.rig
    before = _late(rig)
    rig.wall.set(rig.chance.choice(AHEAD_S))
    late = _late(rig)
    wrong = [] if before or not late else [f"at once after its clock was set: {late}"]
    rig.findings.check("a clock that is set delays nothing", wrong)
    scene.later(scene.soon(*CLOCK_MS), lambda: rig.wall.set(0.0))


def _late(rig: Rig) -> str:
    """The sidecar's warning about a silent master; empty if there is none or no answer."""
    try:
        found = rig.status().warnings
    except grpc.RpcError:
        return ""
    return "".join(each.text for each in found if each.what == "silent master")


def restart(scene: Scene) -> None:
    """Restart the sidecar after a while, in a thread: the master runs alone meanwhile."""
    pause_s = scene.rig.chance.uniform(*ABSENCE_S)

    def start() -> None:
        time.sleep(pause_s)
        try:
            scene.rig.sidecar.start()
        except SidecarGoneError as error:
            scene.rig.findings.violate("comes back", str(error))
            with suppress(SidecarGoneError):
                scene.rig.sidecar.start()

    scene.rig.begin(start)


# Faults of connections.

STALL_S = (0.05, 2.5)
CUT_S = (0.05, 8.0)
"""The upper end is longer than the master waits for an answer."""

RECONNECTS = (20, 60)
CONNECTIONS = 20
METHOD = "/allocator.v1.SessionService/Session"
GARBAGE_S = 10.0


@fault("reconnect, dozens of times", 4)
def reconnect(scene: Scene) -> None:
    """The master reconnects many times, each time with a snapshot."""
    for _ in range(scene.soon(*RECONNECTS)):
        if not scene.link.up:
            break
        scene.rig.findings.counts["reconnects"] += 1
        scene.master.session.open()


@fault("connections reset", 8)
def reset(scene: Scene) -> None:
    """Reset all connections through the proxies."""
    for each in _proxies(scene):
        scene.rig.findings.counts["connections_reset"] += each.reset()


@fault("connections torn", 8)
def tear(scene: Scene) -> None:
    """Forward part of the next data on each connection, then reset it."""
    for each in _proxies(scene):
        each.tear()


@fault("connections stalled", 6)
def stall(scene: Scene) -> None:
    """Hold back all data for a while, then deliver it."""
    proxies = _proxies(scene)
    for each in proxies:
        each.stall()

    def flow() -> None:
        for each in proxies:
            each.flow()

    scene.afterwards(STALL_S, flow)


@fault("network cut", 6, has_cable)
def cut_network(scene: Scene) -> None:
    """Drop packets without an error for a while, as a pulled cable does."""
    cable = scene.rig.cable
    assert cable is not None
    cable.pull()
    scene.afterwards(CUT_S, cable.plug)


@fault("bytes garbled under TLS", 4)
def garble(scene: Scene) -> None:
    """Change a byte under TLS: the record fails its check, so the connection ends.

    Plaintext is spared: a changed amount would go unnoticed there.
    """
    scene.rig.secure.garble()


@fault("garbage on sockets", 3)
def raw_garbage(scene: Scene) -> None:
    """Connect clients that do not speak gRPC: some disconnect at once, others stop sending."""
    ports = [scene.rig.http_port, scene.rig.grpc_port]
    for number in range(CONNECTIONS):
        with suppress(OSError), dial_tcp(ports[number % len(ports)])() as connection:
            connection.settimeout(1.0)
            connection.sendall(scene.rig.chance.randbytes(scene.soon(1, 4_000)))
            if number % 3 == 0:
                connection.shutdown(socket.SHUT_WR)
    scene.rig.findings.counts["garbage_connections"] += CONNECTIONS


@fault("garbage in sessions", 4)
def session_garbage(scene: Scene) -> None:
    """Open session streams, and send invalid or unexpected messages.

    Each stream must end with an error that has a code of its own, or without an answer.
    """
    wrong = []
    clock = scene.rig.sidecar.clock
    with channel(scene.rig.unix) as to_sidecar:
        call: Any = to_sidecar.stream_stream(METHOD)
        for _ in range(5):
            begin_s = clock.now_s
            answers = call(_messages(scene), timeout=GARBAGE_S)
            try:
                errors = [pb.SessionResponse.FromString(answer).error for answer in answers]
            except grpc.RpcError as error:
                # A deadline that passed while the machine was suspended is not the sidecar's fault.
                late = clock.now_s - begin_s >= 0.9 * GARBAGE_S
                stood = error.code() is grpc.StatusCode.DEADLINE_EXCEEDED and not late
                if error.code() not in CUT_OFF and not scene.rig.short and not stood:
                    wrong.append(f"garbage was answered by {error.code()}: {error.details()}")
                if scene.rig.short:
                    break  # further attempts would time out, too
                continue
            scene.rig.findings.counts["garbage_sessions"] += 1
            wrong += [
                f"garbage was answered by {error}"
                for error in errors
                if error.code in {pb.ERROR_CODE_UNSPECIFIED, pb.ERROR_CODE_INTERNAL}
            ]
    scene.rig.findings.check("garbage gets a named error", wrong)


def _messages(scene: Scene) -> Iterator[bytes]:
    chance = scene.rig.chance
    # A valid hello would take the sidecar over from the master; `newer_master` does that.
    valid = pb.SessionRequest(events=pb.EventBatch(sequence=1)).SerializeToString()
    for _ in range(chance.randint(1, 4)):
        data = bytearray(valid if chance.random() < 0.3 else chance.randbytes(64))
        data[chance.randrange(len(data))] ^= chance.randrange(256)
        yield bytes(data)


def _proxies(scene: Scene) -> list[Proxy]:
    return [scene.rig.plain, scene.rig.secure]


# Duplicates: two masters for one sidecar, two sidecars with the same sockets and files.

SECOND_S = 60.0
SECOND = "second.log"
CONFIG_WRONG = 78
"""The exit code for an invalid configuration."""


@fault("a newer master", 4)
def newer_master(scene: Scene) -> None:
    """A newer master takes over for a moment: the old one gets an error, and reconnects."""
    if not scene.link.up:
        return
    rival = PatientLink(scene.rig.unix, scene.started_us + 1)
    try:
        rival.open(_of_nothing())
        # The welcome has arrived; the next answer shows whether the snapshot was accepted.
        rival.exchange(Batch(1, 2, []))
    except LinkDownError:
        return  # frozen or stopped meanwhile
    finally:
        rival.close()
    before = scene.link.superseded
    # The master notices at its next message.
    scene.master.settle()
    scene.rig.findings.counts["superseded"] += scene.link.superseded - before


@fault("an older master", 4)
def older_master(scene: Scene) -> None:
    """A deposed master connects, and must get an error that says why.

    The session of the current master must not be affected.
    """
    scene.master.settle()
    if not scene.link.up:
        return
    rival = PatientLink(scene.rig.unix, scene.started_us - 1)
    wrong = []
    try:
        rival.open(_of_nothing())
        if scene.link.up:
            wrong.append("an older master was taken while a newer one had the sidecar")
    except SessionEndedError as error:
        if "older than" not in str(error):
            wrong.append(f"an older master received {error}")
    except LinkDownError:
        return  # frozen or stopped meanwhile
    finally:
        rival.close()
    scene.rig.findings.check("the newer master has the sidecar", wrong)


@fault("a second sidecar", 1)
def second_sidecar(scene: Scene) -> None:
    """A second process with the same configuration: sockets, ports, journal and state.

    It must exit by itself, with an error that names the path or address in use.
    """
    rig = scene.rig

    def start() -> None:
        code, said = rig.sidecar.second(rig.out / SECOND, SECOND_S)
        if not rig.sidecar.wanted:
            return  # the first one was not running
        if code == CONFIG_WRONG:
            return  # another fault had broken the configuration file
        clear = code == 1 and "cannot start" in said and str(rig.directory) in said
        named = clear or (code == 1 and "cannot be bound" in said)
        wrong = [] if named else [f"a second sidecar ended with {code} and said\n{said}"]
        rig.findings.check("one sidecar at one place", wrong)

    if rig.sidecar.wanted:
        rig.begin(start)


def _of_nothing() -> Opening:
    """The opening of a session for an empty cluster."""
    return Opening(Options(), lambda _kinds: (Define({0: Kind("cpus")}, {}),), 0, 1)


# Exhausted resources: disk space, descriptors.

SHORT_MS = (500, 6_000)
KNOCKS = 40
FULL_BYTES = 1
"""File size limit: simulates a full disk for a single process."""


@fault("disk full", 3)
def disk_full(scene: Scene) -> None:
    """Refuse every write to journal and state, then lift the limit.

    Meanwhile an operator's change must be refused, or its answer must say that it may be lost.
    """
    rig = scene.rig
    if not _limit_for_a_while(scene, resource.RLIMIT_FSIZE, FULL_BYTES):
        return
    wrong = []
    try:
        set_limit(scene, "torture/full", 7 * MILLI)
    except grpc.RpcError as error:
        text = f"{error.code()}: {error.details()}"
        if error.code() in {grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL}:
            wrong.append(f"with a full disk a change was answered by {text}")
    rig.findings.check("a full disk stops nothing", wrong)


@fault("descriptors exhausted", 3)
def no_descriptors(scene: Scene) -> None:
    """Leave the process no descriptor for another connection, then lift the limit."""
    rig = scene.rig

    def room() -> None:
        rig.short = False

    try:
        lowest = lowest_free_descriptor(rig.sidecar.pid)
    except OSError:
        return  # the process has exited
    if not _limit_for_a_while(scene, resource.RLIMIT_NOFILE, lowest, room):
        return
    rig.short = True
    # Do not open more connections than this: they would wait behind a full accept queue.
    with ExitStack() as stack, suppress(OSError):
        for _ in range(KNOCKS):
            stack.enter_context(_knock(rig.http_port))


def _knock(port: int) -> socket.socket:
    connection = dial_tcp(port)()
    connection.settimeout(1.0)
    return connection


def _limit_for_a_while(
    scene: Scene, which: int, soft: int, then: Callable[[], None] = lambda: None
) -> bool:
    """Set a resource limit, lift it later and call `then`; False if the process has exited."""
    sidecar = scene.rig.sidecar
    pid = sidecar.pid
    if not sidecar.limit(which, soft):
        return False

    def lift() -> None:
        if sidecar.pid == pid:
            sidecar.limit(which, None)
        then()

    scene.later(scene.soon(*SHORT_MS), lift)
    return True


# Certificates: replaced, expired, or with a key that does not match.

EXPIRED_MS = (1_000, 8_000)
MARK_S = 0.01
"""Files changed within one tick of the file system's clock would have equal timestamps."""


@fault("certificate rotated", 4)
def rotate(scene: Scene) -> None:
    """Replace the certificate by another valid one: sessions continue, new ones use it."""
    scene.rig.certificates.rotate()
    scene.rig.trusted = True
    _call(scene, taken=True)


@fault("certificate half rotated", 3)
def half_rotated(scene: Scene) -> None:
    """Replace the certificate but not its key: the previous pair must stay in use."""
    certificates = scene.rig.certificates
    # A process that starts with this pair refuses to run, so the pair is replaced at once.
    if not scene.rig.sidecar.wanted or not scene.rig.trusted:
        return
    certificates.half()
    _call(scene, taken=True)
    time.sleep(MARK_S)
    certificates.rotate()


@fault("certificate expired", 3)
def expire(scene: Scene) -> None:
    """Replace the certificate by an expired one for a while: masters must reject it."""
    rig = scene.rig
    rig.certificates.expire()
    rig.trusted = False
    _call(scene, taken=False)

    def renew() -> None:
        rig.certificates.rotate()
        rig.trusted = True

    scene.later(scene.soon(*EXPIRED_MS), renew)


def _call(scene: Scene, *, taken: bool) -> None:
    """Connect by TLS as a deposed master: the sidecar refuses it, but only after the handshake."""
    rig = scene.rig
    time.sleep(MARK_S)
    stream = rig.secure_stream(scene.started_us - 1)
    answered = True
    try:
        stream.open(_of_nothing())
    except SessionEndedError:
        pass  # the sidecar answered, so the handshake succeeded
    except LinkDownError:
        answered = False
    finally:
        stream.close()
    rig.findings.counts["handshakes_tried"] += 1
    rig.findings.counts["handshakes_done"] += answered
    # No answer is acceptable, for example from a frozen process; an answer with an expired
    # certificate is not.
    wrong = ["a master was taken by an expired certificate"] if answered and not taken else []
    # A sidecar without a free descriptor cannot read the new file, and keeps the old certificate.
    if rig.short:
        wrong = []
    rig.findings.check("only a valid certificate is believed", wrong)


# Operators' requests, valid and invalid.

RELOAD_S = 10.0
BAD_CONFIGS = (
    "\n[policy]\nname = 'no-such-policy'\n",
    "\n[learn\n",
    "\n[limits]\nagents = -1\n",
    "\n[limits]\nkinds = 1e400\n",
    "\nno_such_section = 1\n",
    "\n[[limit]]\nrole = ''\nresources = 'cpus:nan'\n",
    "\n\x00\x01\n",
)
REFUSED = (
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.NOT_FOUND,
)


@fault("policy set", 6)
def set_policy(scene: Scene) -> None:
    """Set a random policy and mode; any refusal is a defect."""
    name, mode = scene.rig.chance.choice(sorted(POLICIES)), scene.rig.chance.choice(MODES)
    request = admin_pb2.SetPolicyRequest(policy=settings_pb2.Policy(name=name, mode=mode))
    wrong = _ask(scene, "SetPolicy", request)
    scene.rig.findings.check("operators are answered", wrong)


@fault("setting set", 4)
def set_settings(scene: Scene) -> None:
    """Set a limit for a role without frameworks; it must survive every fault."""
    cpus = scene.soon(1, 1_000) * MILLI
    with suppress(grpc.RpcError):
        set_limit(scene, "torture/kept", cpus)


@fault("questions", 5)
def questions(scene: Scene) -> None:
    """Send every kind of question, and invalid ones; a refusal must have a proper status code."""
    framework = f"tenant-{scene.soon(1, 40)}"
    wrong: list[str] = []
    for method, request in (
        ("GetStatus", admin_pb2.GetStatusRequest()),
        ("GetShares", admin_pb2.GetSharesRequest(fair=True)),
        ("Explain", explain_pb2.ExplainRequest(framework=framework)),
        ("ListNames", admin_pb2.ListNamesRequest()),
        ("ListSettings", admin_pb2.ListSettingsRequest()),
        ("Explain", explain_pb2.ExplainRequest(agent="\x00" * 300)),
        ("ChangeRule", rule_change(limit=settings_pb2.Limit(role="/"))),
        ("SetPolicy", admin_pb2.SetPolicyRequest(policy=settings_pb2.Policy(name="?"))),
    ):
        wrong += _ask(scene, method, request)
    scene.rig.findings.check("operators are answered", wrong)


@fault("bad configuration read", 3)
def bad_config(scene: Scene) -> None:
    """SIGHUP with an invalid file: nothing may change, and the log must name the problem."""
    rig, meter = scene.rig, scene.rig.sidecar.meter
    if not rig.sidecar.wanted:
        return
    said = "configuration refused, nothing has changed"
    before, life = meter.said[said], rig.sidecar.lives
    rig.write_config(rig.chance.choice(BAD_CONFIGS))
    rig.sidecar.signal(signal.SIGHUP)
    refused = meter.await_said(said, before, RELOAD_S)
    rig.write_config()
    wrong = []
    if refused and not meter.latest(said).get("problems"):
        wrong.append("a wrong configuration was refused without a problem named")
    if not refused and rig.sidecar.lives == life:
        wrong.append("a wrong configuration was not refused")
    rig.findings.check("a wrong configuration is refused", wrong)


@fault("configuration reloaded", 3)
def good_config(scene: Scene) -> None:
    """SIGHUP with a valid file that sets a new limit."""
    rig = scene.rig
    rule = f'\n[[limit]]\nrole = "torture/file"\nresources = "cpus:{scene.soon(1, 100)}"\n'
    rig.write_config(rule)
    rig.sidecar.signal(signal.SIGHUP)


def set_limit(scene: Scene, role: str, cpus: int) -> None:
    """Set a limit, and remember it once the sidecar confirms it.

    Raises RpcError if the request is refused or not answered.
    """
    limit = settings_pb2.Limit(role=role, limit=types_pb2.Quantities(name=["cpus"], amount=[cpus]))
    kept = scene.rig.kept
    # Without an answer it is unknown which value is set.
    before = kept.pop(role, None)
    try:
        with scene.rig.operator() as sidecar:
            request = rule_change(limit=limit, force=True)
            answer = sidecar.ChangeRule(request, timeout=ANSWER_S)
    except grpc.RpcError as error:
        if error.code() not in NO_ANSWER and before is not None:
            kept[role] = before
        raise
    # A change that is confirmed as not durable may be lost with the process, or be saved later.
    if answer.change.lasts:
        kept[role] = cpus
    else:
        scene.rig.findings.counts["settings_said_not_to_last"] += 1


def _ask(scene: Scene, method: str, request: Message) -> list[str]:
    """Send a request; returns what is wrong with the answer."""
    try:
        with scene.rig.operator() as sidecar:
            getattr(sidecar, method)(request, timeout=ANSWER_S)
    except grpc.RpcError as error:
        code = error.code()
        if code not in NO_ANSWER and code not in REFUSED:
            asked = json.dumps(str(request))
            return [f"{method} {asked} was answered by {code}: {error.details()}"]
    return []


# Hostile tenants.

TURNS = 5
"""Number of intervals during which the tenants stay."""

BELOW = "tenants"

COUNTED_MAX = 2**43
"""Maximum amount of a resource object, as in a module, so that the sidecar caps no amount."""


@fault("hostile tenants", 8)
def hostile_tenants(scene: Scene) -> None:
    """Add hostile frameworks and agents (one `Manner`): no session may end because of them."""
    master = scene.master
    manner = scene.rig.chance.choice(CREW)
    tenants = Tenants(master, manner, BELOW, COUNTED_MAX)
    scene.rig.findings.manners[manner.name] += 1
    tenants.arrive()
    every_ms = master.options.allocation_interval_ms
    for interval in range(TURNS):
        master.event_heap.after(interval * every_ms, partial(tenants.turn, interval))
    scene.later((TURNS + 1) * every_ms, tenants.depart)
