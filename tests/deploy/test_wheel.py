"""The wheels, installed in a new environment: the first serves, with the second it plays the demo.

For each Python from the oldest that we take to the newest that numba takes, where this machine has
it. Nothing of the checkout is on its path.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import metadata
from pathlib import Path

import pytest
from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
NUMBA_TAKES = metadata("numba").get_all("Classifier") or []
PYTHONS = [
    f"3.{minor}"
    for minor in range(11, 30)
    if f"Programming Language :: Python :: 3.{minor}" in NUMBA_TAKES
]
SOURCES = ("allocator", "laboratory", "pyproject.toml", "README.md", "LICENSE")

PACKAGED = {".py", ".pyi", ".html", ".css"}

WAIT_S = 900
"""Shorter than the timeout of a test; only a busy machine takes long."""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory) -> tuple[Path, Path]:
    """Build both from a copy, for a build leaves things beside its sources."""
    copy = tmp_path_factory.mktemp("sources")
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            left_out = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(source, copy / name, ignore=left_out)
        else:
            shutil.copy(source, copy / name)
    # Without isolation: the build tools are locked, and installed beside us.
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", "made"]
    for directory in (".", "laboratory"):
        subprocess.run([*command, directory], cwd=copy, check=True, capture_output=True, text=True)
    (allocator,) = (copy / "made").glob("mesos_allocator-*.whl")
    (laboratory,) = (copy / "made").glob("mesos_allocator_lab-*.whl")
    return allocator, laboratory


def test_each_wheel_has_its_package_and_no_other(wheels):
    for wheel, package in zip(wheels, ("allocator", "laboratory"), strict=True):
        names = zipfile.ZipFile(wheel).namelist()
        own = {name for name in names if not name.split("/")[0].endswith(".dist-info")}
        files = (path for path in (ROOT / package).rglob("*") if path.is_file())
        kept = {str(path.relative_to(ROOT)) for path in files if path.suffix in PACKAGED}
        kept.add(f"{package}/py.typed")
        # What builds the second, and what only readers of the sources need.
        assert own == {name for name in kept if "/build/" not in name} - {"laboratory/setup.py"}


def locked() -> Iterator[str]:
    """Locked versions without hashes: with hashes, pip would require one for our wheel, too."""
    for line in (ROOT / "requirements-dev.lock").read_text("utf-8").splitlines():
        try:
            requirement = Requirement(line.removesuffix("\\").partition(" #")[0])
        except InvalidRequirement:
            continue
        yield f"{requirement.name}{requirement.specifier}"


def interpreter(version: str) -> str | None:
    """Find a Python that runs: a shim of pyenv may exist without an interpreter."""
    if Version(version).release == sys.version_info[:2]:
        return sys.executable
    found = [shutil.which(f"python{version}")]
    found += map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"))
    return next(filter(runs, filter(None, found)), None)


def runs(python: str) -> bool:
    asked = [python, "-c", "import ssl, venv, zlib"]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


class Installed:
    """The program in an environment of its own, without the checkout."""

    def __init__(self, python: str, place: Path) -> None:
        ours = {"PYTHONPATH", "VIRTUAL_ENV", "MESOS_ALLOCATOR_BRAIN"}
        subprocess.run([python, "-m", "venv", "--without-pip", str(place / "venv")], check=True)
        self.pip = [python, "-m", "pip"]
        self.python = str(place / "venv" / "bin" / "python")
        self.program = str(place / "venv" / "bin" / "mesos-allocator")
        self.laboratory = str(place / "venv" / "bin" / "allocator-lab")
        self.place = place
        self.target = f"unix:{place / 's'}"
        self.environment = {name: value for name, value in os.environ.items() if name not in ours}
        self.environment |= {
            "NUMBA_CACHE_DIR": str(place / "loops"),
            "MESOS_ALLOCATOR_TARGET": self.target,
        }
        if python == sys.executable:
            # All other tests run the loops compiled here, which takes a minute.
            self.environment["NUMBA_DISABLE_JIT"] = "1"
        self.log = place / "log"

    def install(self, wheel: Path) -> None:
        """Install a wheel and what it needs, at the locked versions."""
        versions = self.place / "locked.txt"
        versions.write_text("\n".join(locked()), encoding="utf-8")
        pip = [*self.pip, "--python", self.python, "install", "--quiet"]
        options = ["--only-binary", ":all:", "--no-compile", "--constraint", str(versions)]
        done = subprocess.run(
            [*pip, *options, str(wheel)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr

    def run(self, *words: str, program: str = "") -> str:
        """Run a command to its end; returns what it printed."""
        done = subprocess.run(
            [program or self.program, *words],
            env=self.environment,
            cwd=self.place,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def ask(self, *words: str) -> str:
        """Ask the sidecar, on a machine that may be busy."""
        return self.run(*words, "--timeout", str(WAIT_S))

    @contextmanager
    def serving(self, *flags: str) -> Iterator[subprocess.Popen]:
        """Run a sidecar for the duration of the context."""
        command = [self.program, "serve", "--set", f"listen.targets={self.target}", *flags]
        with beside(command, self.log, env=self.environment, cwd=self.place) as running:
            yield running


@contextmanager
def beside(
    command: list[str], log: Path, cwd: Path, env: dict[str, str] | None = None
) -> Iterator[subprocess.Popen]:
    """Run a command for the duration of the context."""
    with log.open("ab") as out:
        running = subprocess.Popen(command, stdout=out, stderr=out, env=env, cwd=cwd)
    try:
        yield running
    finally:
        running.send_signal(signal.SIGTERM)
        running.wait()  # pytest-timeout bounds it


@pytest.mark.long
@pytest.mark.parametrize("version", PYTHONS)
def test_installed_it_serves_and_with_the_laboratory_it_plays(version, wheels, tmp_path):
    wheel, laboratory = wheels
    python = interpreter(version)
    if python is None:
        pytest.skip(f"this machine has no Python {version}")
    installed = Installed(python, tmp_path)
    installed.install(wheel)
    it_is_the_wheel_that_runs(installed, wheel)
    it_compiles_its_loops_once(installed)
    it_serves(installed)
    assert not Path(installed.laboratory).exists()
    installed.install(laboratory)
    it_explains(installed)
    it_plays_the_demo(installed)


def it_is_the_wheel_that_runs(installed: Installed, wheel: Path) -> None:
    assert wheel.name.split("-")[1] in installed.run("--version")
    environment = Path(installed.program).parents[1]
    asked = [installed.python, "-c", "import allocator; print(allocator.__file__)"]
    where = subprocess.check_output(asked, cwd="/", env={}, text=True)
    assert Path(where.strip()).is_relative_to(environment)


def it_compiles_its_loops_once(installed: Installed) -> None:
    """Ahead of time, as in an image."""
    if "NUMBA_DISABLE_JIT" in installed.environment:
        assert "none is compiled" in installed.run("warm")
        return
    assert "all loops are compiled" in installed.run("warm")
    assert installed.run("warm").startswith("already compiled: ")


def it_serves(installed: Installed) -> None:
    with installed.serving("--http-port", "0") as sidecar:
        await_socket(installed, sidecar)
        assert "drf" in installed.ask("status")
    assert sidecar.returncode == 0


def it_explains(installed: Installed) -> None:
    """To a master that the laboratory emulates."""
    deadline = time.monotonic() + WAIT_S
    with installed.serving("--http-port", "0") as sidecar:
        await_socket(installed, sidecar)
        soak = [installed.laboratory, "demo", "soak", "--target", installed.target]
        soak += ["--seconds", "1000000", "--size", "4"]
        with beside(soak, installed.log, env=installed.environment, cwd=installed.place):
            roles: list[dict] = []
            while not roles:
                assert time.monotonic() < deadline, installed.log.read_text()
                time.sleep(0.2)
                roles = json.loads(installed.ask("shares", "--json")).get("roles", [])
            role = roles[0]["role"]
            assert f"role {role}" in installed.ask("explain", "role", role)
            assert "emulated-master" in installed.ask("status")
    assert sidecar.returncode == 0


def await_socket(installed: Installed, sidecar: subprocess.Popen) -> None:
    deadline = time.monotonic() + WAIT_S
    while not Path(installed.target.removeprefix("unix:")).exists():
        assert sidecar.poll() is None, installed.log.read_text()
        assert time.monotonic() < deadline, installed.log.read_text()
        time.sleep(0.1)


def it_plays_the_demo(installed: Installed) -> None:
    words = ["--policies", "drf,ps-dsf", "--modes", "characterised", "--scale", "0.02"]
    out = installed.place / "out"
    words += ["--out", str(out)]
    assert "ps-dsf characterised" in installed.run("demo", *words, program=installed.laboratory)
    (picture,) = out.glob("*.png")
    assert picture.read_bytes().startswith(b"\x89PNG")
