"""Processes whose loops run as plain Python: they start in half the time, and decide the same."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from laboratory.links.sidecar_process import SidecarProcess

PLAIN = {"NUMBA_DISABLE_JIT": "1"}
"""The environment of such a process."""


@contextmanager
def plain_sidecar(
    directory: Path, settings: Mapping[str, str] | None = None
) -> Iterator[SidecarProcess]:
    """Run a sidecar with plain loops, which logs warnings only.

    `PLAIN` is set only while it starts: this process may compile loops at the same time.
    """
    process = SidecarProcess(directory, {"log.level": "warning", **(settings or {})})
    with mock.patch.dict(os.environ, PLAIN):
        process.start()
    try:
        yield process
    finally:
        process.stop()
