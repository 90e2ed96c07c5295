"""The demo's compose file, started: the sidecar gets its master, and Prometheus scrapes it.

Grafana is left out: `tests/integration/metrics` tests its dashboards.
"""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
import yaml

from tests.deploy.containers import ROOT, Container, run, until

DEPLOY = ROOT / "deploy"
STARTED = ("sidecar", "master", "prometheus")


def composer(program: str) -> list[str]:
    """The compose command of an engine; skips the test if there is none."""
    name = "podman-compose" if program == "podman" else f"{program} compose"
    asked = f"{name} version".split()
    if shutil.which(asked[0]) is None or subprocess.run(asked, check=False).returncode != 0:
        pytest.skip(f"{name} does not work here")
    return name.split()


@pytest.fixture
def demo(engine, demo_image, tmp_path) -> Iterator[dict[str, Container]]:
    """Start it without ports on this machine, which others may use; gives containers by service."""
    command = composer(engine.program)
    file = yaml.safe_load((DEPLOY / "demo.compose.yaml").read_text())
    file["name"] = f"test-{uuid4().hex}"
    file["services"] = {name: file["services"][name] for name in STARTED}
    for service in file["services"].values():
        assert service["image"] == demo_image or "/" in service["image"]
        engine.need(service["image"])
        service.pop("build", None)
        service.pop("ports", None)
        relative = service.get("volumes", [])
        service["volumes"] = [f"{DEPLOY / each.removeprefix('./')}" for each in relative]
    copy: Path = tmp_path / "compose.yaml"
    copy.write_text(yaml.safe_dump(file))
    compose = [*command, "--file", str(copy), "--project-name", file["name"]]
    try:
        run(*compose, "up", "--detach")
        listed = run(engine.program, "ps", "--format", "{{.Names}}").split()
        names = {
            service: next(each for each in listed if file["name"] in each and service in each)
            for service in STARTED
        }
        yield {name: Container(engine.program, each) for name, each in names.items()}
    finally:
        run(*compose, "down", "--volumes")


@pytest.mark.long
def test_the_demo_starts_and_prometheus_sees_the_session(demo):
    sidecar = demo["sidecar"]

    def session() -> str:
        said = json.loads(sidecar.exec("mesos-allocator", "status", "--json", "--timeout", "60"))
        return said.get("master_id", "")

    def scraped() -> list:
        url = "http://127.0.0.1:9090/api/v1/query?query=mesos_allocator_in_session"
        ask = f"import urllib.request as r; print(r.urlopen('{url}').read().decode())"
        found = json.loads(sidecar.exec("python", "-c", ask))["data"]["result"]
        return [each["value"][1] for each in found]

    sidecar.until_healthy()
    until(lambda: session() == "emulated-master", demo["master"].log)
    until(lambda: scraped() == ["1"], demo["prometheus"].log)
