"""Counts calls, where a test says how much work something may be."""

from collections import Counter
from types import ModuleType
from typing import Any

import pytest


def count_calls(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType | type, *names: str
) -> Counter[str]:
    """Count from now on how often functions of a module, or a class, are called by their names."""
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
