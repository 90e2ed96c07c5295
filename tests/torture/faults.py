"""What goes wrong, a function each, and where it strikes.

Which fault strikes is drawn by weight: what takes long is rare.
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
from laboratory.hostile import CREW
from laboratory.links.base import Batch, LinkDownError, Opening
from laboratory.links.sidecar_process import channel, lowest_free_descriptor, observer_of
from laboratory.master.emulated import EmulatedMaster
from laboratory.module_protocol import SessionEndedError
from tests.hostile.tenants import Tenants
from tests.torture.link import PatientLink, TorturedLink
from tests.torture.rig import ANSWER_S, Rig, SidecarGoneError
from tests.torture.wires import Proxy, dial_tcp


@dataclass
class Scene:
    """Where a fault strikes: the rig, and the master whose world is played.

    later: schedules a call after some milliseconds of the world's time, at its end at the latest.
    """

    rig: Rig
    master: EmulatedMaster
    link: TorturedLink
    started_us: int
    later: Callable[[int, Callable[[], None]], None]

    def afterwards(self, between_s: tuple[float, float], undo: Callable[[], None]) -> None:
        """Have something undone after a while of real time: the master may be waiting by then."""
        timer = threading.Timer(self.rig.chance.uniform(*between_s), undo)
        timer.daemon = True
        timer.start()

    def soon(self, least_ms: int, most_ms: int) -> int:
        return self.rig.chance.randint(least_ms, most_ms)


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that goes wrong.

    weight: how likely it is beside the others.
    possible: whether it can be done here.
    strike: does it; what must come of it at once is looked at there.
    """

    name: str
    weight: int
    possible: Callable[[Rig], bool]
    strike: Callable[[Scene], None]


FAULTS: list[Fault] = []
"""All of them."""


def fault(
    name: str, weight: int, possible: Callable[[Rig], bool] = lambda _rig: True
) -> Callable[[Callable[[Scene], None]], Fault]:
    """Make a function a fault, one of `FAULTS`."""

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
"""The process was stopped, or is full: no answer to what was said."""

NO_ANSWER = (*CUT_OFF, grpc.StatusCode.DEADLINE_EXCEEDED)
"""Or it is frozen; and no defect."""


# What happens to the process.

FREEZE_S = (0.05, 2.5)
ABSENCE_S = (0.0, 1.0)
PLANNING_S = (0.0, 0.5)
"""Until after a small plan: it is copied, worked out, on its way, or adopted."""

OBSERVER_S = 60.0
"""How long questions may stay unanswered, on a busy machine under further faults."""

ANSWERED = "questions are answered again"
AHEAD_S = (-40 * 86_400.0, -7_200.0, -90.0, -0.5, 0.5, 90.0, 7_200.0, 40 * 86_400.0)
CLOCK_MS = (500, 8_000)


@fault("kill -9", 2)
def kill(scene: Scene) -> None:
    """SIGKILL: it is gone between two instructions, and starts again after a while."""
    scene.rig.sidecar.kill()
    restart(scene)


@fault("terminate and restart", 2)
def terminate(scene: Scene) -> None:
    """SIGTERM: it takes leave in order, with exit code 0, and starts again."""
    code = scene.rig.sidecar.terminate()
    wrong = [] if code == 0 else [f"SIGTERM: exit code {code}\n{scene.rig.sidecar.meter.tail()}"]
    scene.rig.findings.check("ends in order", wrong)
    restart(scene)


@fault("freeze", 6)
def freeze(scene: Scene) -> None:
    """SIGSTOP, then SIGCONT after a time that may be shorter or longer than every timeout."""
    sidecar = scene.rig.sidecar
    sidecar.signal(signal.SIGSTOP)
    scene.afterwards(FREEZE_S, lambda: sidecar.signal(signal.SIGCONT))


@fault("observer killed", 3)
def kill_observer(scene: Scene) -> None:
    """SIGKILL to the process that answers questions: another one does, and soon."""
    rig = scene.rig
    if _signal_observer(rig, signal.SIGKILL):
        rig.begin(partial(_await_answer, rig, rig.sidecar.lives))


@fault("observer killed over a plan", 3)
def kill_planner(scene: Scene) -> None:
    """SIGKILL to it soon after a policy is set that plans: its plan is lost, decisions go on."""
    _set_planning_policy(scene)
    kill_observer.strike(scene)


@fault("killed as a plan comes", 2)
def kill_planned(scene: Scene) -> None:
    """SIGKILL to the deciding process, soon after a policy is set that plans."""
    _set_planning_policy(scene)
    kill.strike(scene)


def _set_planning_policy(scene: Scene) -> None:
    """Set a policy that plans, and let its plan get as far as it likes."""
    chance = scene.rig.chance
    specs = (PolicySpec(name, mode=chance.choice(MODES)) for name in sorted(POLICIES))
    spec = chance.choice([each for each in specs if isinstance(build(each), PlanningPolicy)])
    policy = settings_pb2.Policy(name=spec.name, mode=spec.mode)
    wrong = _ask(scene, "SetPolicy", admin_pb2.SetPolicyRequest(policy=policy))
    scene.rig.findings.check("operators are answered", wrong)
    time.sleep(chance.uniform(*PLANNING_S))


@fault("observer frozen", 3)
def freeze_observer(scene: Scene) -> None:
    """SIGSTOP to it, and SIGCONT after a while: decisions go on, and it catches up."""
    pid = _signal_observer(scene.rig, signal.SIGSTOP)

    def thaw() -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)

    if pid:
        scene.afterwards(FREEZE_S, thaw)


def _signal_observer(rig: Rig, number: int) -> int:
    """Send the observer a signal; returns its process, 0 if it is not there."""
    pid = observer_of(rig.sidecar.pid)
    if pid is None:
        return 0
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return 0
    return pid


def _await_answer(rig: Rig, life: int) -> None:
    """Ask until there is an answer, or the sidecar was stopped meanwhile."""
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
    """The wall clock jumps and later returns; no waiting time may change."""
    rig = scene.rig
    before = _late(rig)
    rig.wall.set(rig.chance.choice(AHEAD_S))
    late = _late(rig)
    wrong = [] if before or not late else [f"at once after its clock was set: {late}"]
    rig.findings.check("a clock that is set delays nothing", wrong)
    scene.later(scene.soon(*CLOCK_MS), lambda: rig.wall.set(0.0))


def _late(rig: Rig) -> str:
    """What the sidecar says of a master that says nothing; nothing if it cannot be asked."""
    try:
        found = rig.status().warnings
    except grpc.RpcError:
        return ""
    return "".join(each.text for each in found if each.what == "silent master")


def restart(scene: Scene) -> None:
    """Start the sidecar again after a while, on a thread: meanwhile the master is alone."""
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


# What happens to connections.

STALL_S = (0.05, 2.5)
CUT_S = (0.05, 8.0)
"""Up to longer than the master waits for an answer."""

RECONNECTS = (20, 60)
CONNECTIONS = 20
METHOD = "/allocator.v1.SessionService/Session"
GARBAGE_S = 10.0


@fault("reconnect, dozens of times", 4)
def reconnect(scene: Scene) -> None:
    """The master calls again and again, each time with a snapshot."""
    for _ in range(scene.soon(*RECONNECTS)):
        if not scene.link.up:
            break
        scene.rig.findings.counts["reconnects"] += 1
        scene.master.session.open()


@fault("connections reset", 8)
def reset(scene: Scene) -> None:
    """All connections through the proxies are reset."""
    for each in _proxies(scene):
        scene.rig.findings.counts["connections_reset"] += each.reset()


@fault("connections torn", 8)
def tear(scene: Scene) -> None:
    """A part of the next bytes on a connection arrives, then it is reset."""
    for each in _proxies(scene):
        each.tear()


@fault("connections stalled", 6)
def stall(scene: Scene) -> None:
    """Nothing arrives for a while, and then everything does."""
    proxies = _proxies(scene)
    for each in proxies:
        each.stall()

    def flow() -> None:
        for each in proxies:
            each.flow()

    scene.afterwards(STALL_S, flow)


@fault("network cut", 6, has_cable)
def cut_network(scene: Scene) -> None:
    """Packets are lost without an error for a while: a cable that is pulled."""
    cable = scene.rig.cable
    assert cable is not None
    cable.pull()
    scene.afterwards(CUT_S, cable.plug)


@fault("bytes garbled under TLS", 4)
def garble(scene: Scene) -> None:
    """A byte is changed under TLS: the record cannot be believed, so the connection ends.

    In plaintext nothing could notice a wrong amount.
    """
    scene.rig.secure.garble()


@fault("garbage on sockets", 3)
def raw_garbage(scene: Scene) -> None:
    """Peers that speak no gRPC, and leave at once or never read; some say nothing at all."""
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
    """Streams of messages that are no messages, or not the ones that are due.

    The answer must be an error with a name, or nothing more.
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
                # Time during which the machine stood still does not count.
                late = clock.now_s - begin_s >= 0.9 * GARBAGE_S
                stood = error.code() is grpc.StatusCode.DEADLINE_EXCEEDED and not late
                if error.code() not in CUT_OFF and not scene.rig.short and not stood:
                    wrong.append(f"garbage was answered by {error.code()}: {error.details()}")
                if scene.rig.short:
                    break  # it has nothing left to take a connection with; that takes its time
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
    # A greeting would take the sidecar from the master: that is for the rivals to do.
    valid = pb.SessionRequest(events=pb.EventBatch(sequence=1)).SerializeToString()
    for _ in range(chance.randint(1, 4)):
        data = bytearray(valid if chance.random() < 0.3 else chance.randbytes(64))
        data[chance.randrange(len(data))] ^= chance.randrange(256)
        yield bytes(data)


def _proxies(scene: Scene) -> list[Proxy]:
    return [scene.rig.plain, scene.rig.secure]


# Two where there should be one: masters that want one sidecar, sidecars that want one place.

SECOND_S = 60.0
SECOND = "second.log"
CONFIG_WRONG = 78
"""The exit code where the configuration is wrong."""


@fault("a newer master", 4)
def newer_master(scene: Scene) -> None:
    """A newer master takes the sidecar over for a moment: the old one gets an error and returns."""
    if not scene.link.up:
        return
    rival = PatientLink(scene.rig.unix, scene.started_us + 1)
    try:
        rival.open(_of_nothing())
        # The welcome is here; whether the snapshot is taken only the next answer says.
        rival.exchange(Batch(1, 2, []))
    except LinkDownError:
        return  # frozen, or stopped meanwhile
    finally:
        rival.close()
    before = scene.link.superseded
    # The master notices with the next that it says.
    scene.master.settle()
    scene.rig.findings.counts["superseded"] += scene.link.superseded - before


@fault("an older master", 4)
def older_master(scene: Scene) -> None:
    """A master that was deposed calls: it is refused, by an error that says why.

    Nothing may change for the one that is served.
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
        return  # frozen, or stopped meanwhile
    finally:
        rival.close()
    scene.rig.findings.check("the newer master has the sidecar", wrong)


@fault("a second sidecar", 1)
def second_sidecar(scene: Scene) -> None:
    """A second process with the same configuration: sockets, ports, journal and state.

    It has to end by itself, with an error that names the place.
    """
    rig = scene.rig

    def start() -> None:
        code, said = rig.sidecar.second(rig.out / SECOND, SECOND_S)
        if not rig.sidecar.wanted:
            return  # the first one was not there
        if code == CONFIG_WRONG:
            return  # it has read a file that was wrong at that moment
        clear = code == 1 and "cannot start" in said and str(rig.directory) in said
        named = clear or (code == 1 and "cannot be listened on" in said)
        wrong = [] if named else [f"a second sidecar ended with {code} and said\n{said}"]
        rig.findings.check("one sidecar at one place", wrong)

    if rig.sidecar.wanted:
        rig.begin(start)


def _of_nothing() -> Opening:
    """How a session of a cluster of nothing begins."""
    return Opening(Options(), lambda _kinds: (Define({0: Kind("cpus")}, {}),), 0, 1)


# Something runs out: the disk, or descriptors.

SHORT_MS = (500, 6_000)
KNOCKS = 40
FULL_BYTES = 1
"""No file may grow beyond this: so a disk is full for one process, and for no other."""


@fault("disk full", 3)
def disk_full(scene: Scene) -> None:
    """Not a byte more for journal and state; then there is room again.

    An operator's change must be refused then, or said to be kept.
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
    """Not a connection more; then there is room again."""
    rig = scene.rig

    def room() -> None:
        rig.short = False

    try:
        lowest = lowest_free_descriptor(rig.sidecar.pid)
    except OSError:
        return  # the process is gone
    if not _limit_for_a_while(scene, resource.RLIMIT_NOFILE, lowest, room):
        return
    rig.short = True
    # If the accept queue is full, further connections would wait for long.
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
    """Limit the process, and lift that later, and do something more then; False: it is gone."""
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


# Certificates that are replaced, expire, or fit only by halves.

EXPIRED_MS = (1_000, 8_000)
MARK_S = 0.01
"""Files that change within one tick of the file system's clock would look alike."""


@fault("certificate rotated", 4)
def rotate(scene: Scene) -> None:
    """Another valid certificate: sessions go on, and new ones begin with it."""
    scene.rig.authority.rotate()
    scene.rig.trusted = True
    _call(scene, taken=True)


@fault("certificate half rotated", 3)
def half_rotated(scene: Scene) -> None:
    """A certificate without its key: the pair from before counts."""
    authority = scene.rig.authority
    # What a process shows that starts now is nothing: it refuses to. So this is over at once.
    if not scene.rig.sidecar.wanted or not scene.rig.trusted:
        return
    authority.half()
    _call(scene, taken=True)
    time.sleep(MARK_S)
    authority.rotate()


@fault("certificate expired", 3)
def expire(scene: Scene) -> None:
    """The certificate's time is over: masters do not believe it, until there is another one."""
    rig = scene.rig
    rig.authority.expire()
    rig.trusted = False
    _call(scene, taken=False)

    def renew() -> None:
        rig.authority.rotate()
        rig.trusted = True

    scene.later(scene.soon(*EXPIRED_MS), renew)


def _call(scene: Scene, *, taken: bool) -> None:
    """Call by TLS as an older master, who is refused when the handshake is done."""
    rig = scene.rig
    time.sleep(MARK_S)
    stream = rig.secure_stream(scene.started_us - 1)
    answered = True
    try:
        stream.open(_of_nothing())
    except SessionEndedError:
        pass  # the sidecar spoke to us: the handshake is done
    except LinkDownError:
        answered = False
    finally:
        stream.close()
    rig.findings.counts["handshakes_tried"] += 1
    rig.findings.counts["handshakes_done"] += answered
    # Without an answer the process may be frozen; an answer must come from a valid certificate.
    wrong = ["a master was taken by an expired certificate"] if answered and not taken else []
    # Without a descriptor it could not read the other one, and shows the one from before.
    if rig.short:
        wrong = []
    rig.findings.check("only a valid certificate is believed", wrong)


# Valid and invalid actions of operators during operation.

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
    """Another policy, in one mode or the other; any answer but yes is a defect."""
    name, mode = scene.rig.chance.choice(sorted(POLICIES)), scene.rig.chance.choice(MODES)
    request = admin_pb2.SetPolicyRequest(policy=settings_pb2.Policy(name=name, mode=mode))
    wrong = _ask(scene, "SetPolicy", request)
    scene.rig.findings.check("operators are answered", wrong)


@fault("setting set", 4)
def set_settings(scene: Scene) -> None:
    """A limit for a role without frameworks; it must survive every fault."""
    cpus = scene.soon(1, 1_000) * MILLI
    with suppress(grpc.RpcError):
        set_limit(scene, "torture/kept", cpus)


@fault("questions", 5)
def questions(scene: Scene) -> None:
    """Operators ask all that can be asked, and nonsense; what is refused is refused by name."""
    framework = f"tenant-{scene.soon(1, 40)}"
    wrong: list[str] = []
    for method, request in (
        ("GetStatus", admin_pb2.GetStatusRequest()),
        ("GetShares", admin_pb2.GetSharesRequest(fair=True)),
        ("Explain", explain_pb2.ExplainRequest(framework=framework)),
        ("ListNames", admin_pb2.ListNamesRequest()),
        ("ListSettings", admin_pb2.ListSettingsRequest()),
        ("Explain", explain_pb2.ExplainRequest(agent="\x00" * 300)),
        ("SetLimit", settings_pb2.SetLimitRequest(limit=settings_pb2.Limit(role="/"))),
        ("SetPolicy", admin_pb2.SetPolicyRequest(policy=settings_pb2.Policy(name="?"))),
    ):
        wrong += _ask(scene, method, request)
    scene.rig.findings.check("operators are answered", wrong)


@fault("bad configuration read", 3)
def bad_config(scene: Scene) -> None:
    """SIGHUP with a file that is wrong: nothing changes, and the log says what is wrong."""
    rig, meter = scene.rig, scene.rig.sidecar.meter
    if not rig.sidecar.wanted:
        return
    said = "configuration not taken over, nothing has changed"
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


@fault("configuration read again", 3)
def good_config(scene: Scene) -> None:
    """SIGHUP with a file that is right, and not the same."""
    rig = scene.rig
    rule = f'\n[[limit]]\nrole = "torture/file"\nresources = "cpus:{scene.soon(1, 100)}"\n'
    rig.write_config(rule)
    rig.sidecar.signal(signal.SIGHUP)


def set_limit(scene: Scene, role: str, cpus: int) -> None:
    """Set a limit, and remember it if the sidecar says that it is set; RpcError if not."""
    limit = settings_pb2.Limit(role=role, limit=types_pb2.Quantities(name=["cpus"], amount=[cpus]))
    kept = scene.rig.kept
    # If no answer comes, either may be so.
    before = kept.pop(role, None)
    try:
        with scene.rig.operator() as sidecar:
            request = settings_pb2.SetLimitRequest(limit=limit, force=True)
            answer = sidecar.SetLimit(request, timeout=ANSWER_S)
    except grpc.RpcError as error:
        if error.code() not in NO_ANSWER and before is not None:
            kept[role] = before
        raise
    # What is said not to last may be gone with the process, or be kept a minute later.
    if answer.change.lasts:
        kept[role] = cpus
    else:
        scene.rig.findings.counts["settings_said_not_to_last"] += 1


def _ask(scene: Scene, method: str, request: Message) -> list[str]:
    """Ask, and say what is wrong with the answer."""
    try:
        with scene.rig.operator() as sidecar:
            getattr(sidecar, method)(request, timeout=ANSWER_S)
    except grpc.RpcError as error:
        code = error.code()
        if code not in NO_ANSWER and code not in REFUSED:
            asked = json.dumps(str(request))
            return [f"{method} {asked} was answered by {code}: {error.details()}"]
    return []


# Tenants that abuse everything the master accepts.

TURNS = 5
"""Intervals during which they stay."""

BELOW = "tenants"

COUNTED_MAX = 2**43
"""Thousandths of an object that a module counts at most, so that a sidecar counts all of it."""


@fault("hostile tenants", 8)
def hostile_tenants(scene: Scene) -> None:
    """Frameworks and agents of one manner of the crew; no session may end for their sake."""
    master = scene.master
    manner = scene.rig.chance.choice(CREW)
    tenants = Tenants(master, manner, BELOW, COUNTED_MAX)
    scene.rig.findings.manners[manner.name] += 1
    tenants.arrive()
    every_ms = master.options.allocation_interval_ms
    for interval in range(TURNS):
        master.event_heap.after(interval * every_ms, partial(tenants.turn, interval))
    scene.later((TURNS + 1) * every_ms, tenants.depart)
