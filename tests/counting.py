"""Counts calls and memory, for tests that bound the work of something."""

from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest


def count_calls(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType | type, *names: str
) -> Counter[str]:
    """Count calls of functions of a module or a class, by their names."""
    count: Counter[str] = Counter()

    def counted(name: str) -> Any:
        real = getattr(module, name)

        def call(*arguments: Any, **named: Any) -> Any:
            count[name] += 1
            return real(*arguments, **named)

        return call

    for name in names:
        monkeypatch.setattr(module, name, counted(name))
    return count


def resident_bytes(array: np.ndarray) -> int:
    """Bytes of memory that a large array takes; unwritten pages take none.

    Adjacent memory in the same mapping counts as well.
    """
    at, resident, inside = array.__array_interface__["data"][0], 0, False
    for line in Path("/proc/self/smaps").read_text(encoding="ascii").splitlines():
        name, *rest = line.split()
        if "-" in name and not name.endswith(":"):
            begin, end = (int(each, 16) for each in name.split("-"))
            inside = begin < at + array.nbytes and at < end
        elif inside and name == "Rss:":
            resident += int(rest[0]) * 1024
    return resident
