"""What goes wrong, a class each."""

from allocator.lab.torture.faults.base import Fault as Fault
from allocator.lab.torture.faults.base import Scene as Scene
from allocator.lab.torture.faults.certificates import Expire, HalfRotated, Rotate
from allocator.lab.torture.faults.operators import (
    BadConfig,
    GoodConfig,
    Questions,
    SetPolicy,
    SetSettings,
)
from allocator.lab.torture.faults.process import Freeze, Kill, SetClock, Terminate
from allocator.lab.torture.faults.rivals import NewerMaster, OlderMaster, SecondSidecar
from allocator.lab.torture.faults.shortage import DiskFull, NoDescriptors
from allocator.lab.torture.faults.streams import (
    CutNetwork,
    Garble,
    RawGarbage,
    Reconnect,
    Reset,
    SessionGarbage,
    Stall,
    Tear,
)
from allocator.lab.torture.faults.tenants import HostileTenants

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
