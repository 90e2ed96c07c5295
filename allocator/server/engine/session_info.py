"""Who has the allocator, for operators to read."""

from dataclasses import dataclass

from allocator.wire import ModuleFigures, SidecarSession


@dataclass(frozen=True)
class SessionInfo:
    """Who has the allocator, how far it is, and what its module says of itself."""

    number: int
    peer: str
    master_id: str
    instance_id: str
    instance_started_us: int
    mesos_version: str
    module_version: str
    sequence: int
    clock_ms: int
    figures: ModuleFigures | None = None


def info_of(session: SidecarSession, number: int, peer: str) -> SessionInfo | None:
    """Say who has the allocator; None where nobody said hello yet."""
    greeting = session.greeting
    if greeting is None:
        return None
    return SessionInfo(
        number=number,
        peer=peer,
        master_id=greeting.master_id,
        instance_id=greeting.instance_id,
        instance_started_us=greeting.instance_started_us,
        mesos_version=greeting.mesos_version,
        module_version=greeting.module_version,
        sequence=session.sequence,
        clock_ms=session.clock_ms,
        figures=session.figures,
    )
