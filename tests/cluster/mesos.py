"""Locates a Mesos: its programs, in an install prefix or a build tree, and our module for it."""

import os
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = ("mesos-master", "mesos-agent", "mesos-execute")
BELOW = (".", "bin", "sbin", "src", "build/src", "libexec/mesos")
MODULE_NAME = "org_mesosallocator_SidecarAllocator"


class NotFoundError(Exception):
    """A file is missing; the message names it, and the variable that sets its directory."""


@dataclass(frozen=True)
class Mesos:
    """Programs of one Mesos.

    launcher: the directory of the helpers of agents, such as `mesos-containerizer`.
    module: our allocator, built for this Mesos.
    """

    master: Path
    agent: Path
    execute: Path
    launcher: Path
    module: Path

    def library(self, name: str) -> Path:
        """A library of Mesos's own modules.

        Raises NotFoundError if this Mesos was built without it.
        """
        prefix = self.master.parent.parent
        for below in ("src/.libs", "lib/mesos/modules", "lib"):
            if (prefix / below / name).is_file():
                return prefix / below / name
        raise NotFoundError(f"there is no {name} in {prefix}/lib")


def find(root: str | None = None, module: str | None = None) -> Mesos:
    """Find the programs below `root` (or MESOS_ROOT), and the module (or MESOS_ALLOCATOR_MODULE).

    Raises NotFoundError if something is missing.
    """
    root = root or os.environ.get("MESOS_ROOT")
    module = module or os.environ.get("MESOS_ALLOCATOR_MODULE")
    if not root:
        raise NotFoundError("no Mesos: give --mesos-root or MESOS_ROOT")
    if not module:
        raise NotFoundError("no module: give --mesos-module or MESOS_ALLOCATOR_MODULE")
    if not Path(module).is_file():
        raise NotFoundError(f"MESOS_ALLOCATOR_MODULE: there is no file {module}")
    master, agent, execute = (_program(Path(root), name) for name in PROGRAMS)
    launcher = _program(Path(root), "mesos-containerizer").parent
    return Mesos(master, agent, execute, launcher, Path(module).resolve())


def _program(root: Path, name: str) -> Path:
    for below in BELOW:
        path = root / below / name
        if path.is_file() and os.access(path, os.X_OK):
            return path.resolve()
    raise NotFoundError(f"MESOS_ROOT: there is no {name} in {root} or below it")
