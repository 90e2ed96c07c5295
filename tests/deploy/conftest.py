"""Fixtures of the tests that need containers."""

import re

import pytest

from tests.deploy.containers import ROOT, Engine, engine, run

__all__ = ["engine"]


@pytest.fixture(scope="session")
def image(engine) -> str:
    """Build it as users do."""
    need_bases(engine)
    run("make", "image", f"ENGINE={engine.program}")
    return "mesos-allocator"


@pytest.fixture(scope="session")
def demo_image(engine) -> str:
    """Build it as compose does."""
    need_bases(engine)
    name = "mesos-allocator-demo"
    build = [engine.program, "build", "--target", "demo", "--tag", name, str(ROOT)]
    run(*build, BUILDAH_FORMAT="docker")
    return name


def need_bases(engine: Engine) -> None:
    """Pull the images that ours begin with; the other stages are our own."""
    for base in set(re.findall(r"(?m)^FROM (\S+/\S+)", (ROOT / "Dockerfile").read_text())):
        engine.need(base)
