"""Containers for tests: docker or podman, whichever works here, by its command line."""

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

ROOT = Path(__file__).resolve().parents[2]
WAIT_S = 240.0
"""Time limit of a container's step, on a busy machine."""


def run(*words: str | Path, text: str | None = None, **environment: str) -> str:
    """Run a command in the checkout; returns its output; raises if it fails."""
    done = subprocess.run(
        words,
        cwd=ROOT,
        env=os.environ | environment,
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{words}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
    return done.stdout.strip()


def until(condition: Callable[[], bool], about: Callable[[], str]) -> None:
    """Wait for a condition; `about` is the error if it does not become true."""
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, about()
        time.sleep(0.2)


class Container:
    """One container, which may be stopped and restarted."""

    def __init__(self, engine: str, name: str) -> None:
        self._engine = engine
        self.name = name

    def do(self, verb: str, *words: str) -> str:
        return run(self._engine, verb, *words, self.name)

    def exec(self, *words: str) -> str:
        return run(self._engine, "exec", self.name, *words)

    def state(self, field: str) -> str:
        return self.do("inspect", "--format", f"{{{{.State.{field}}}}}")

    def log(self) -> str:
        command = [self._engine, "logs", self.name]
        return subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        ).stdout

    def is_healthy(self) -> bool:
        if self._engine == "podman":  # its health checks are systemd timers, if systemd runs
            command = [self._engine, "healthcheck", "run", self.name]
            subprocess.run(command, capture_output=True, check=False)
        return self.state("Health.Status") == "healthy"

    def until_healthy(self) -> None:
        until(lambda: self.state("Running") != "true" or self.is_healthy(), self.log)
        assert self.state("Running") == "true", self.log()


class Engine:
    """The engine that works here, docker or podman; skips a test if neither does."""

    def __init__(self) -> None:
        found = subprocess.run(
            [ROOT / ".ci" / "container-engine"], capture_output=True, text=True, check=False
        )
        if found.returncode:
            pytest.skip(found.stderr.strip())
        self.program = found.stdout.strip()

    def need(self, image: str) -> None:
        """Pull an official image; in CI it is a failure if it is unavailable."""
        for words in (["image", "inspect", image], ["pull", image]):
            done = subprocess.run(
                [self.program, *words], capture_output=True, text=True, check=False
            )
            if done.returncode == 0:
                return
        fail_or_skip = pytest.fail if os.environ.get("CI") else pytest.skip
        fail_or_skip(f"{image} cannot be had: {done.stderr.strip()}")

    @contextmanager
    def running(self, image: str, *options: str) -> Iterator[Container]:
        """Run an image in the background, for the duration of the context."""
        name = f"test-{uuid4().hex}"
        run(self.program, "run", "--detach", "--name", name, *options, image)
        try:
            yield Container(self.program, name)
        finally:
            run(self.program, "rm", "--force", "--volumes", name)

    @contextmanager
    def volume(self) -> Iterator[str]:
        """A volume that outlives its containers."""
        name = f"test-{uuid4().hex}"
        run(self.program, "volume", "create", name)
        try:
            yield name
        finally:
            run(self.program, "volume", "rm", name)


@pytest.fixture(scope="session")
def engine() -> Engine:
    return Engine()
