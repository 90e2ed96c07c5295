"""What goes wrong, a class each."""

from allocator.sim.torture.faults.base import Fault as Fault
from allocator.sim.torture.faults.base import Scene as Scene
from allocator.sim.torture.faults.certificates import Expire, HalfRotated, Rotate
from allocator.sim.torture.faults.operators import (
    BadConfig,
    GoodConfig,
    Questions,
    SetPolicy,
    SetSettings,
)
from allocator.sim.torture.faults.process import Freeze, Kill, SetClock, Terminate
from allocator.sim.torture.faults.rivals import NewerMaster, OlderMaster, SecondSidecar
from allocator.sim.torture.faults.shortage import DiskFull, NoDescriptors
from allocator.sim.torture.faults.streams import (
    CutNetwork,
    Garble,
    RawGarbage,
    Reconnect,
    Reset,
    SessionGarbage,
    Stall,
    Tear,
)
from allocator.sim.torture.faults.tenants import HostileTenants

FAULTS: tuple[Fault, ...] = (
    Kill(),
    Terminate(),
    Freeze(),
    SetClock(),
    Reconnect(),
    Reset(),
    Tear(),
    Stall(),
    CutNetwork(),
    Garble(),
    RawGarbage(),
    SessionGarbage(),
    NewerMaster(),
    OlderMaster(),
    SecondSidecar(),
    DiskFull(),
    NoDescriptors(),
    Rotate(),
    HalfRotated(),
    Expire(),
    SetPolicy(),
    SetSettings(),
    Questions(),
    BadConfig(),
    GoodConfig(),
    HostileTenants(),
)
"""All of them; which strikes is drawn by weight."""
