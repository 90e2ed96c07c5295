"""Fixtures of the tests that need containers."""

import re

import pytest

from tests.deploy.containers import ROOT, engine, run

__all__ = ["engine"]


@pytest.fixture(scope="session")
def image(engine) -> str:
    """Build it as users do."""
    for base in set(re.findall(r"(?m)^FROM (\S+)", (ROOT / "Dockerfile").read_text())):
        engine.need(base)
    run("make", "image", f"ENGINE={engine.program}")
    return "mesos-allocator"
