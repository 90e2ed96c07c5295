"""Processes whose loops run as plain Python: they start in half the time, and decide the same."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

PLAIN = {"NUMBA_DISABLE_JIT": "1"}
"""The environment of such a process."""


@contextmanager
def plain_children() -> Iterator[None]:
    """What is started meanwhile runs so. Nothing may be compiled here at the same time."""
    with mock.patch.dict(os.environ, PLAIN):
        yield
