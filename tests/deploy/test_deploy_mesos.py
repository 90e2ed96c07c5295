"""The manifest and the page for operators of the module agree with the module's sources."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.cluster.mesos import MODULE_NAME
from tests.docs import docs_scripts

ROOT = Path(__file__).resolve().parents[2]
MODULE = ROOT / "mesos-module"
DEPLOY = ROOT / "deploy" / "mesos"


reference = docs_scripts.load("module_reference")
read, only, parameters = reference.read, reference.only, reference.parameters


@pytest.fixture
def manifest():
    return json.loads((DEPLOY / "modules.json").read_text("utf-8"))


@pytest.fixture
def library(manifest):
    (library,) = manifest["libraries"]
    return library


def test_the_manifest_names_the_symbol_that_the_library_exports(library):
    (module,) = library["modules"]
    name = module["name"]
    defined = only(
        r"\nmesos::modules::Module<mesos::allocator::Allocator>\s+(\w+)\(",
        read("adapter/module.cpp"),
    )
    exported = only(r"global:\s*([^;]*);", read("adapter/module.map"))
    page = (ROOT / "docs/tutorials/beside-a-master.md").read_text("utf-8")
    assert name == defined == exported == MODULE_NAME
    assert only(r"--allocator=(\w+)", page) == name


def test_the_manifest_names_the_library_of_one_mesos(library):
    name = only(r"OUTPUT_NAME (\S+)", read("adapter/CMakeLists.txt"))
    assert name.endswith("-${MESOS_VERSION}")
    stem = re.escape(name.removesuffix("${MESOS_VERSION}"))
    assert re.fullmatch(rf"/usr/\S*/mesos/modules/lib{stem}\d+\.\d+\.\d+\.so", library["file"])


def test_the_manifest_gives_parameters_that_the_module_takes(library):
    known = parameters()
    for given in library["modules"][0]["parameters"]:
        assert set(given) == {"key", "value"}
        assert isinstance(given["value"], str), "Mesos takes nothing but strings"
        _, allowed = known[given["key"]]
        if " to " in allowed:
            least, most = map(int, allowed.split(" to "))
            assert least <= int(given["value"]) <= most


def test_every_parameter_and_metric_has_a_meaning():
    assert set(parameters()) == set(reference.MEANINGS)
    told = [name for names in reference.METRICS for name in names.split(", ")]
    assert len(told) == len(set(told))
    assert set(told) == reference.metrics()


def test_an_installed_manifest_differs_in_the_library_only(tool, tmp_path, manifest, library):
    path = "/opt/else where/lib/mesos/modules/libmesos_allocator-1.9.0.so"
    words = {"TEMPLATE": DEPLOY / "modules.json", "LIBRARY": path, "MANIFEST": "/share/m.json"}
    subprocess.run(
        [
            tool("cmake"),
            *(f"-D{name}={word}" for name, word in words.items()),
            "-P",
            str(MODULE / "cmake" / "Manifest.cmake"),
        ],
        check=True,
        capture_output=True,
        env={"DESTDIR": str(tmp_path)},
    )
    installed = json.loads((tmp_path / "share" / "m.json").read_text("utf-8"))
    assert library["file"] != path
    library["file"] = path
    assert installed == manifest
