"""The packages, from installation to removal: in a bare Debian 12 with systemd in a container."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from allocator import __version__ as VERSION  # noqa: N812
from tests.deploy.containers import ROOT, Container, run, until

NEWER = f"{VERSION}.1"
SITE = f"https://docs.example/{VERSION}/"
RELEASED_S, RELEASED = "1700000000", "2023-11-14"
DEBIAN = """
FROM docker.io/library/debian:12
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends procps rpm systemd
CMD ["/lib/systemd/systemd"]
"""
CONFIG = "/etc/mesos-allocator/config.toml"
STATE = "/var/lib/mesos-allocator/settings.json"

DEPLOY = ROOT / "deploy"


def test_scripts_and_contents_agree_with_the_unit():
    unit = (DEPLOY / "systemd" / "mesos-allocator.service").read_text()
    script = (DEPLOY / "packages" / "postinstall").read_text()
    (user,) = re.findall(r"(?m)^User=(.*)$", unit)
    (cache,) = re.findall(r"(?m)^Environment=NUMBA_CACHE_DIR=%C(/.*)/loops$", unit)
    assert f"\ncache=/var/cache{cache} " in script
    assert "mv $cache/next $cache/loops\n" in script
    assert f' warm" {user} ' in script
    assert re.search(rf"useradd .*\\\n +{user}\n", script)
    contents = yaml.safe_load((DEPLOY / "packages" / "sidecar.yaml").read_text())["contents"]
    started = unit.partition("\nExecStart=")[2].partition("\n")[0].split()
    assert {started[0], started[-1]} <= {place for each in contents for place in each.values()}
    for each in (each for each in contents if "src" in each):
        assert each["src"].startswith((".cache/", "/opt/")) or (ROOT / each["src"]).is_file()


@pytest.fixture(scope="module")
def packages() -> Path:
    """Build packages of two versions, which report different versions."""
    run("make", "packages", f"SITE_URL={SITE}", SOURCE_DATE_EPOCH=RELEASED_S)
    (code,) = (ROOT / ".cache/packages/root").rglob("site-packages/allocator/__init__.py")
    code.write_text(code.read_text().replace(f'"{VERSION}"', f'"{NEWER}"'))
    (bytecode,) = code.parent.glob("__pycache__/__init__.*.pyc")
    bytecode.unlink()
    nfpm = str(ROOT / ".cache" / "packages" / "tools" / "bin" / "nfpm")
    pack = [nfpm, "package", "--config", "deploy/packages/sidecar.yaml", "--target", "dist/"]
    for kind in ("deb", "rpm"):
        run(*pack, "--packager", kind, VERSION=NEWER, ARCH="amd64", REPOSITORY_URL="")
    return ROOT / "dist"


@pytest.fixture
def debian(engine, packages) -> Iterator[Container]:
    engine.need("docker.io/library/debian:12")
    image = run(engine.program, "build", "--quiet", "-", text=DEBIAN)
    of_systemd = ["--privileged", "--tmpfs=/run", f"--volume={packages}:/dist:ro"]
    with engine.running(image, *of_systemd) as machine:
        state = "systemctl is-system-running || true"
        until(lambda: machine.exec("sh", "-c", state) in {"running", "degraded"}, machine.log)
        yield machine


@pytest.mark.long
@pytest.mark.timeout(3600)  # the loops are compiled
def test_installed_started_upgraded_removed_and_purged(debian):
    def apt(*words: str) -> None:
        debian.exec("apt-get", "-y", "-qq", "--no-install-recommends", *words)

    def property_of(name: str) -> str:
        return debian.exec("systemctl", "show", "--property", name, "--value", "mesos-allocator")

    def status() -> dict:
        return json.loads(debian.exec("mesos-allocator", "status", "--json"))

    package = f"/dist/mesos-allocator_{VERSION}_amd64.deb"
    files = debian.exec("dpkg-deb", "--contents", package).splitlines()
    assert {each.split()[3] for each in files} == {RELEASED}, "packages can be made again"
    apt("install", package)
    assert property_of("ActiveState") == "inactive", "operators start it"
    debian.exec("systemctl", "enable", "--now", "mesos-allocator")
    assert status()["loops_state"] != "compiling"
    assert version_of_the_observer(debian) == VERSION
    links = debian.exec("grep", "-o", "runbook_url: .*/", "/usr/share/mesos-allocator/alerts.yaml")
    assert set(links.splitlines()) == {f"runbook_url: {SITE}how-to/"}
    debian.exec("mesos-allocator", "policy", "set", "tsf")
    debian.exec("sh", "-c", f"echo '# ours' >>{CONFIG}")
    before = property_of("MainPID")

    newer = f"/dist/mesos-allocator_{NEWER}_amd64.deb"
    debian.exec("dpkg", "--unpack", newer)
    assert restarted_observer(debian, before) == VERSION, "until the loops are compiled"
    apt("install", newer)
    query = ("dpkg-query", "--show", "--showformat=${Version}", "mesos-allocator")
    assert debian.exec(*query) == NEWER
    assert property_of("ActiveState") == "active"
    assert property_of("MainPID") != before
    told = status()
    assert version_of_the_observer(debian) == NEWER
    assert told["policy"]["name"] == "tsf"
    assert told["loops_state"] != "compiling"
    assert "# ours" in debian.exec("cat", CONFIG)

    apt("remove", "mesos-allocator")
    assert property_of("ActiveState") == "inactive"
    assert debian.exec("sh", "-c", "ls -d /opt/* /var/cache/mesos* || true") == ""
    debian.exec("ls", CONFIG, STATE)

    apt("purge", "mesos-allocator")
    assert left_in(debian) == []
    rpm_lives_likewise(debian)


def restarted_observer(debian: Container, decider: str) -> str:
    """Make the sidecar start another observer; returns its version."""

    def children() -> str:
        return debian.exec("sh", "-c", f"pgrep --parent {decider} || true")

    before = children()
    debian.exec("kill", "-KILL", before)
    until(lambda: children() not in {"", before}, debian.log)
    return version_of_the_observer(debian)


def version_of_the_observer(debian: Container) -> str:
    """The observer reports its own version; requests wait until it can."""
    ask = "import urllib.request as r; print(r.urlopen('http://127.0.0.1:5057/metrics').read())"
    said = debian.exec("python3.11", "-c", ask)
    return re.findall(r'mesos_allocator_build_info{version="([^"]+)"}', said)[0]


def rpm_lives_likewise(debian: Container) -> None:
    """Its scripts are the same ones; Debian's rpm runs them, without the packages of Red Hat."""

    def rpm(*words: str) -> None:
        debian.exec("env", "NUMBA_DISABLE_JIT=1", "rpm", "--nodeps", *words)

    rpm("--install", f"/dist/mesos-allocator-{VERSION}-1.x86_64.rpm")
    debian.exec("systemctl", "start", "mesos-allocator")
    rpm("--upgrade", f"/dist/mesos-allocator-{NEWER}-1.x86_64.rpm")
    debian.exec("systemctl", "is-active", "mesos-allocator")
    rpm("--erase", "mesos-allocator")
    assert left_in(debian) == ["/var/lib/mesos-allocator"]


def left_in(debian: Container) -> list[str]:
    return debian.exec("find", "/", "-xdev", "-name", "*mesos-allocator*").split()
