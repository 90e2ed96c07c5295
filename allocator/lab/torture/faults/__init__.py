"""What goes wrong, a class each."""

from allocator.lab.torture.faults.base import Fault as Fault
from allocator.lab.torture.faults.base import Scene as Scene
from allocator.lab.torture.faults.connections import (
    CutNetwork,
    Expire,
    Garble,
    HalfRotated,
    NewerMaster,
    OlderMaster,
    RawGarbage,
    Reconnect,
    Reset,
    Rotate,
    SecondSidecar,
    SessionGarbage,
    Stall,
    Tear,
)
from allocator.lab.torture.faults.operators import (
    BadConfig,
    GoodConfig,
    HostileTenants,
    Questions,
    SetPolicy,
    SetSettings,
)
from allocator.lab.torture.faults.process import (
    DiskFull,
    Freeze,
    Kill,
    NoDescriptors,
    SetClock,
    Terminate,
)

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
