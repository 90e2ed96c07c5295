"""The two compose files in deploy/, as far as they can be checked without a container engine."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from allocator.server.config import load
from tests.cli.command_tree import commands
from tests.cluster.mesos import MODULE_NAME, NotFoundError, find
from tests.deploy.test_deploy_mesos import parameters

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
CLUSTER, DEMO = "compose.yaml", "demo.compose.yaml"
COMPOSE: dict[str, dict[str, Any]] = {
    name: yaml.safe_load((DEPLOY / name).read_text()) for name in (CLUSTER, DEMO)
}
SERVICES: dict[str, dict[str, Any]] = COMPOSE[CLUSTER]["services"]
ALL = [(file, name) for file in COMPOSE for name in COMPOSE[file]["services"]]

HTTP_PORT = 5057


def of_kind(kind: str) -> dict[str, dict[str, Any]]:
    return {name: each for name, each in SERVICES.items() if re.fullmatch(rf"{kind}-\d", name)}


def mounts(service: dict[str, Any]) -> list[tuple[str, str]]:
    """Source and target of each mount."""
    parts = (text.split(":") for text in service.get("volumes", []))
    return [(each[0], each[1]) for each in parts]


def settings_of_the_image() -> dict[str, str]:
    """The variables of the sidecar that its Dockerfile sets."""
    text = (ROOT / "Dockerfile").read_text()
    return dict(re.findall(r"(MESOS_ALLOCATOR_\w+)=([^\s\\]+)", text.replace("\\\n", " ")))


def composed(tool, tmp_path, file, **environment: str) -> subprocess.CompletedProcess[str]:
    """Have compose parse a file and print the result, which needs no engine.

    Debian ships Compose 1, in Python, which does not know `name` yet.
    """
    deploy = tmp_path / "deploy"
    deploy.mkdir()
    text = (DEPLOY / file).read_text("utf-8")
    (deploy / file).write_text(re.sub(r"(?m)^name: .*\n", "", text))
    return subprocess.run(
        [tool("docker-compose"), "--file", str(deploy / file), "config"],
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("file", COMPOSE)
def test_compose_reads_it_as_we_do(file, tool, tmp_path):
    done = composed(tool, tmp_path, file, MESOS_IMAGE="mesos:1.11.0")
    assert done.returncode == 0, done.stderr
    read = yaml.safe_load(done.stdout)
    services = COMPOSE[file]["services"]
    assert read["services"].keys() == services.keys()
    assert read.get("volumes", {}).keys() == COMPOSE[file].get("volumes", {}).keys()
    for name, ours in services.items():
        theirs = read["services"][name]
        assert theirs["image"] == ours["image"]
        assert theirs.get("environment") == ours.get("environment")
        assert set(theirs.get("depends_on", [])) == set(ours.get("depends_on", []))
        assert theirs.get("network_mode") == ours.get("network_mode")
        assert len(theirs.get("volumes", [])) == len(ours.get("volumes", []))
        assert len(theirs.get("ports", [])) == len(ours.get("ports", []))
    if file == CLUSTER:
        masters = [read["services"][name]["build"]["args"] for name in of_kind("master")]
        assert masters == [{"MESOS_BUILD": "/mesos/build", "MESOS_IMAGE": "mesos:1.11.0"}] * 3


def test_compose_asks_for_the_image_of_mesos(tool, tmp_path):
    done = composed(tool, tmp_path, CLUSTER)
    assert done.returncode != 0
    assert "an image in which Mesos was built" in done.stderr


def test_there_is_a_whole_cluster():
    assert len(of_kind("master")) == len(of_kind("sidecar")) == 3
    assert len(of_kind("agent")) == 3
    assert {"zookeeper", "prometheus", "grafana"} <= SERVICES.keys()


@pytest.mark.parametrize(("file", "name"), ALL)
def test_references_of_services_exist(file, name):
    services = COMPOSE[file]["services"]
    service = services[name]
    assert service["image"]
    build = service.get("build")
    if build:
        context = DEPLOY / build["context"]
        assert (context / build["dockerfile"]).is_file()
    for source, _ in mounts(service):
        if source.startswith("."):
            assert (DEPLOY / source).exists(), source
        else:
            assert source in COMPOSE[file]["volumes"]
    for published in service.get("ports", []):
        assert published.startswith("127.0.0.1:"), "reached from other machines"
    before = service.get("depends_on", {})
    assert set(before) <= services.keys()
    for each in before if isinstance(before, dict) else ():
        assert before[each] == {"condition": "service_healthy"}
        # The sidecar's image has a check of its own.
        ours = {"mesos-allocator", "mesos-allocator-demo"}
        assert services[each]["image"] in ours or "healthcheck" in services[each]


def test_everything_declared_is_used():
    used = {source for service in SERVICES.values() for source, _ in mounts(service)}
    assert set(COMPOSE[CLUSTER]["volumes"]) <= used


@pytest.mark.parametrize("name", of_kind("sidecar"))
def test_a_sidecar_takes_its_settings_and_is_reached_by_its_master(name):
    service = SERVICES[name]
    environment = {**settings_of_the_image(), **service["environment"]}
    config = load(None, environment, [])
    assert config.http.page == "all"
    assert config.http.host == "0.0.0.0"
    assert config.http.port == HTTP_PORT
    assert [port.rpartition(":")[2] for port in service["ports"]] == [str(HTTP_PORT)]
    (target,) = (each for each in config.listen.targets if each.startswith("unix:"))
    directory = str(Path(target.removeprefix("unix:")).parent)
    (socket,) = (source for source, place in mounts(service) if place == directory)
    # The journal and operators' settings outlive the container.
    assert str(Path(config.journal.path).parent) in {place for _, place in mounts(service)}

    master = SERVICES[name.replace("sidecar", "master")]
    assert (socket, directory) in mounts(master)
    assert name in master["depends_on"]
    manifest = json.loads((DEPLOY / "compose" / "modules.json").read_text())
    given = manifest["libraries"][0]["modules"][0]["parameters"]
    assert {each["key"]: each["value"] for each in given} == {"target": target}


def test_masters_load_the_module_that_is_installed():
    manifest = json.loads((DEPLOY / "compose" / "modules.json").read_text())
    pattern = json.loads((DEPLOY / "mesos" / "modules.json").read_text())
    (library,), (known,) = manifest["libraries"], pattern["libraries"]
    assert Path(library["file"]).name == Path(known["file"]).name
    assert library["file"].startswith("/usr/local/lib/mesos/modules/")
    assert library["modules"][0]["name"] == MODULE_NAME
    assert {each["key"] for each in library["modules"][0]["parameters"]} <= set(parameters())
    for master in of_kind("master").values():
        assert master["environment"]["MESOS_ALLOCATOR"] == MODULE_NAME
        placed = {place for _, place in mounts(master)}
        assert master["environment"]["MESOS_MODULES"].removeprefix("file://") in placed
        assert int(master["environment"]["MESOS_QUORUM"]) > len(of_kind("master")) / 2
    text = (DEPLOY / "mesos" / "Dockerfile").read_text()
    for name in SERVICES["master-1"]["build"]["args"]:
        assert f"ARG {name}" in text


@pytest.mark.parametrize("kind", ["master", "agent"])
def test_mesos_knows_the_flags(kind):
    try:
        mesos = find()
    except NotFoundError as error:
        pytest.skip(str(error))
    program = getattr(mesos, kind)
    done = subprocess.run([program, "--help"], capture_output=True, text=True, check=False)
    known = set(re.findall(r"--(?:\[no-\])?(\w+)", done.stdout + done.stderr))
    for service in of_kind(kind).values():
        flags = {name.removeprefix("MESOS_").lower() for name in service["environment"]}
        flags |= {word[2:].partition("=")[0] for word in service["command"] if word[:2] == "--"}
        assert flags <= known


def test_prometheus_asks_every_sidecar_and_grafana_prometheus(tool, tmp_path):
    config = yaml.safe_load((DEPLOY / "compose" / "prometheus.yml").read_text())
    (job,) = config["scrape_configs"]
    # The alert for a missing sidecar refers to this job.
    assert job["job_name"] == "mesos-allocator"
    targets = job["static_configs"][0]["targets"]
    assert targets == [f"{name}:{HTTP_PORT}" for name in of_kind("sidecar")]
    (source,) = yaml.safe_load((DEPLOY / "compose" / "datasources.yaml").read_text())["datasources"]
    assert source["url"] == "http://prometheus:9090"
    home = SERVICES["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert (DEPLOY / "grafana" / "dashboards" / Path(home).name).is_file()
    for name in ("compose/prometheus.yml", "prometheus/alerts.yaml"):
        shutil.copy(DEPLOY / name, tmp_path)
    command = [tool("promtool"), "check", "config", "prometheus.yml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_only_sidecars_have_the_health_check_of_their_image():
    for file, name in ALL:
        service = COMPOSE[file]["services"][name]
        ours = service["image"] in {"mesos-allocator", "mesos-allocator-demo"}
        disabled = service.get("healthcheck", {}).get("disable", False)
        assert disabled == (ours and "entrypoint" in service), name


def test_in_the_demo_all_share_the_loopback_that_their_files_name():
    services = COMPOSE[DEMO]["services"]
    sidecar = services["sidecar"]
    config = load(None, {**settings_of_the_image(), **sidecar["environment"]}, [])
    assert (config.http.page, config.http.port) == ("all", HTTP_PORT)
    for name in ("master", "prometheus", "grafana"):
        assert services[name]["network_mode"] == "service:sidecar"
    words = [*services["master"]["entrypoint"], *services["master"]["command"]]
    soak = dict(commands())[tuple(words[:3])].make_context("soak", words[3:]).params
    assert soak["target"] in config.listen.targets
    scraped = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())
    targets = scraped["scrape_configs"][0]["static_configs"][0]["targets"]
    assert targets == [f"127.0.0.1:{HTTP_PORT}"]
    provided = (DEPLOY / "grafana" / "provisioning" / "datasources.yaml").read_text()
    assert yaml.safe_load(provided)["datasources"][0]["url"] == "http://127.0.0.1:9090"
    home = services["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert (DEPLOY / "grafana" / "dashboards" / Path(home).name).is_file()
    printed = re.findall(r"localhost:(\d+)", " ".join(services["links"]["command"]))
    assert sorted(f"127.0.0.1:{port}:{port}" for port in printed) == sorted(sidecar["ports"])


def test_only_the_image_of_the_demo_has_the_laboratory():
    text = (ROOT / "Dockerfile").read_text()
    stages = dict(re.findall(r"(?ms)^FROM \S+ AS (\S+)\n(.*?)(?=^FROM |\Z)", text))
    assert "COPY laboratory " in stages["build-demo"]
    assert "--from=build-demo " in stages["demo"]
    assert not any("COPY laboratory" in stages[name] for name in ("build", "sidecar"))
    assert "build-demo" not in stages["sidecar"]
    assert re.findall(r"(?m)^FROM (.*)$", text)[-1] == "sidecar", "what is built by default"
    sidecar = COMPOSE[DEMO]["services"]["sidecar"]["build"]
    assert sidecar["target"] == "demo"
