"""What operators do, right and wrong, and what tenants say, while everything goes on."""

import json
import signal
from contextlib import suppress
from functools import partial
from typing import ClassVar

import grpc
from google.protobuf.message import Message

from allocator.core import MILLI
from allocator.lab.hostile import CREW
from allocator.lab.hostile.tenants import Tenants
from allocator.lab.torture.faults.base import Anywhere, Scene
from allocator.lab.torture.rig import ANSWER_S
from allocator.policies import MODES, POLICIES
from allocator.v1 import admin_pb2 as pb
from allocator.v1 import explain_pb2, settings_pb2, types_pb2

# What operators do, right and wrong, while everything goes on.

RELOAD_S = 10.0
SHUT = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
)
"""The process is frozen, stopped or full: no answer, and no defect."""

BAD_CONFIGS = (
    "\n[policy]\nname = 'no-such-policy'\n",
    "\n[learn\n",
    "\n[limits]\nagents = -1\n",
    "\n[limits]\nkinds = 1e400\n",
    "\nno_such_section = 1\n",
    "\n[[limit]]\nrole = ''\nresources = 'cpus:nan'\n",
    "\n\x00\x01\n",
)


class SetPolicy(Anywhere):
    """Another policy, in one mode or the other."""

    name: ClassVar[str] = "policy set"
    weight: ClassVar[int] = 6

    def strike(self, scene: Scene) -> None:
        """Set any of them; what is answered other than yes is a defect."""
        name, mode = scene.rig.chance.choice(sorted(POLICIES)), scene.rig.chance.choice(MODES)
        request = pb.SetPolicyRequest(policy=settings_pb2.Policy(name=name, mode=mode))
        wrong = _ask(scene, "SetPolicy", request)
        scene.rig.findings.check("operators are answered", wrong)


class SetSettings(Anywhere):
    """A limit for a role that nobody has; it must outlive whatever happens to the process."""

    name: ClassVar[str] = "setting set"
    weight: ClassVar[int] = 4

    def strike(self, scene: Scene) -> None:
        """Set it, and remember what was answered."""
        cpus = scene.soon(1, 1_000) * MILLI
        with suppress(grpc.RpcError):
            set_limit(scene, "torture/kept", cpus)


class Questions(Anywhere):
    """Operators ask everything that can be asked, one of them nonsense."""

    name: ClassVar[str] = "questions"
    weight: ClassVar[int] = 5

    def strike(self, scene: Scene) -> None:
        """Ask; whatever is refused must be refused by name."""
        framework = f"tenant-{scene.soon(1, 40)}"
        wrong: list[str] = []
        for method, request in (
            ("GetStatus", pb.GetStatusRequest()),
            ("GetShares", pb.GetSharesRequest(fair=True)),
            ("Explain", explain_pb2.ExplainRequest(framework=framework)),
            ("ListNames", pb.ListNamesRequest()),
            ("ListSettings", pb.ListSettingsRequest()),
            ("Explain", explain_pb2.ExplainRequest(agent="\x00" * 300)),
            ("SetLimit", settings_pb2.SetLimitRequest(limit=settings_pb2.Limit(role="/"))),
            ("SetPolicy", pb.SetPolicyRequest(policy=settings_pb2.Policy(name="?"))),
        ):
            wrong += _ask(scene, method, request)
        scene.rig.findings.check("operators are answered", wrong)


class BadConfig(Anywhere):
    """SIGHUP with a file that is wrong: nothing changes, and the log says what is wrong."""

    name: ClassVar[str] = "bad configuration read"
    weight: ClassVar[int] = 3

    def strike(self, scene: Scene) -> None:
        """Write it, have it read, and put the right one back."""
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


class GoodConfig(Anywhere):
    """SIGHUP with a file that is right, and not the same."""

    name: ClassVar[str] = "configuration read again"
    weight: ClassVar[int] = 3

    def strike(self, scene: Scene) -> None:
        """Have it read."""
        rig = scene.rig
        rule = f'\n[[limit]]\nrole = "torture/file"\nresources = "cpus:{scene.soon(1, 100)}"\n'
        rig.write_config(rule)
        rig.sidecar.signal(signal.SIGHUP)


def set_limit(scene: Scene, role: str, cpus: int) -> None:
    """Set a limit, and remember it where the sidecar says that it is set; RpcError where not."""
    limit = settings_pb2.Limit(role=role, limit=types_pb2.Quantities(name=["cpus"], amount=[cpus]))
    kept = scene.rig.kept
    # Where no answer comes, either may be so.
    before = kept.pop(role, None)
    try:
        with scene.rig.operator() as sidecar:
            request = settings_pb2.SetLimitRequest(limit=limit, force=True)
            answer = sidecar.SetLimit(request, timeout=ANSWER_S)
    except grpc.RpcError as error:
        if error.code() not in SHUT and before is not None:
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
        if code not in SHUT and code not in _REFUSED:
            asked = json.dumps(str(request))
            return [f"{method} {asked} was answered by {code}: {error.details()}"]
    return []


_REFUSED = (
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.NOT_FOUND,
)


# Tenants that tell the master whatever it takes.

TURNS = 5
"""For so many intervals they say what they say."""

BELOW = "tenants"


class HostileTenants(Anywhere):
    """Frameworks and agents of one manner of the crew; no session may end for their sake."""

    name: ClassVar[str] = "hostile tenants"
    weight: ClassVar[int] = 8

    def strike(self, scene: Scene) -> None:
        """Let them come, and go after a while."""
        master = scene.master
        manner = scene.rig.chance.choice(CREW)
        tenants = Tenants(master, manner, BELOW)
        scene.rig.findings.manners[manner.name] += 1
        tenants.arrive()
        every_ms = master.options.allocation_interval_ms
        for interval in range(TURNS):
            master.event_heap.after(interval * every_ms, partial(tenants.turn, interval))
        scene.later((TURNS + 1) * every_ms, tenants.depart)
