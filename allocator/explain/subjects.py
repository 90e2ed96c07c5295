"""Who is asked about: frameworks, roles and agents by what people call them."""

from collections.abc import Iterable, Mapping

import numpy as np

from allocator.core import FrameworkInfo, State


class UnknownSubjectError(LookupError):
    """There is nobody of that name.

    `known`: names and ids that there are, in no order; some may be empty, or there twice.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        super().__init__(f"there is no {kind} {name!r}")
        self.kind = kind
        self.name = name
        self.known = list(known)


def handles_of_framework(state: State, name: str) -> list[int]:
    """Find the framework of that id, or all of that name."""
    infos: Mapping[int, FrameworkInfo] = {
        handle: info for handle, info in enumerate(state.frameworks.info) if info is not None
    }
    found = [handle for handle, info in infos.items() if info.framework_id == name]
    found = found or [handle for handle, info in infos.items() if info.name == name]
    if not found:
        known = [each for info in infos.values() for each in (info.name, info.framework_id)]
        raise UnknownSubjectError("framework", name, known)
    return found


def rows_of_role(state: State, path: str) -> list[int]:
    """Find the rows of the clients in a role or below it."""
    if not path or state.roles.row(path) is None:
        raise UnknownSubjectError("role", path, state.roles.path)
    # By name, for the numbering of the tree is kept when it is asked for, and this only looks.
    inside = [f"{each}/".startswith(f"{path}/") for each in state.roles.path]
    clients = state.clients
    rows = np.flatnonzero(clients.framework)
    return [int(row) for row in rows if inside[int(clients.role[row])]]


def handle_of_agent(state: State, name: str) -> int:
    """Find the handle of the agent of that id, or else on that host."""
    infos = {handle: info for handle, info in enumerate(state.agents.info) if info is not None}
    for what in ("agent_id", "hostname"):
        for handle, info in infos.items():
            if getattr(info, what) == name:
                return handle
    known = [each for info in infos.values() for each in (info.hostname, info.agent_id)]
    raise UnknownSubjectError("agent", name, known)
