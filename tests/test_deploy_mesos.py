"""The manifest and the page for operators of the module say what the module's sources say."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from allocator.v1 import session_pb2 as pb
from tests.cluster.mesos import MODULE_NAME

ROOT = Path(__file__).resolve().parent.parent
MODULE = ROOT / "mesos-module"
DEPLOY = ROOT / "deploy" / "mesos"
HOUR_MS = 3600 * 1000


def read(*names: str) -> str:
    """Read sources of the module, one after the other."""
    return "\n".join((MODULE / name).read_text("utf-8") for name in names)


def only(pattern: str, text: str) -> str:
    """Give the single match of a pattern."""
    (match,) = re.findall(pattern, text)
    return match


def value(expression: str) -> str:
    """Compute a C++ constant, for the page: `64 << 20` is 67108864."""
    if expression in {"true", "false"}:
        return expression
    plain = re.sub(r"int64_t\((\d+)\)", r"\1", expression).replace("HOUR_MS", str(HOUR_MS))
    assert re.fullmatch(r"[\d <]+", plain), expression
    base, *shifts = (int(word) for word in plain.split("<<"))
    for shift in shifts:
        base <<= shift
    return str(base)


def parameters() -> dict[str, tuple[str, str]]:
    """Read the default and the range of each parameter; both empty for texts."""
    defaults = read("adapter/parameters.hpp", "session/session.hpp", "session/transport.hpp")
    found = {}
    readers = only(r"(?s)map<string, Reader> readers\(.*?\n}\n", read("adapter/parameters.cpp"))
    for key, kind, target, bounds in re.findall(
        r"(?s)\{\"(\w+)\",\s*(text|boolean|number|sorter)\(&([\w.>-]+)(?:, (.*?))?\)\}", readers
    ):
        if kind == "text":
            found[key] = "", ""
            continue
        member = re.split(r"\.|->", target)[-1]
        default = only(rf" {member}(?:\{{| = )([^;{{}}]+)\}}?;", defaults)
        if kind == "sorter":
            found[key] = default.strip('"'), "drf, random"
            continue
        least, most = bounds.split(", ") if bounds else ("true", "false")
        joint = " to " if bounds else ", "
        found[key] = value(default), value(least) + joint + value(most)
    assert len(found) == readers.count('{"')
    return found


def metrics() -> set[str]:
    """List what the module puts below `allocator/sidecar/`."""
    source = read("adapter/metrics.cpp")
    single = re.findall(r"\{\"([\w/]+)\",\s*\[\]", source) + re.findall(
        r"add\(process, \"([\w/]+)\",", source
    )
    assert len(single) > 20
    causes = re.findall(r"case Cause::\w+: return \"(\w+)\";", read("session/keeper.cpp"))
    assert len(causes) == int(only(r"CAUSE_COUNT = (\d+)", read("session/counters.hpp")))
    reasons = [
        name.removeprefix("OUTCOME_REASON_").lower()
        for name, number in pb.OutcomeReason.items()
        if number
    ]
    return {
        *single,
        *(f"ends/{cause}" for cause in causes),
        *(f"outcomes/{reason}" for reason in reasons),
    }


def rows(section: str) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the names in the first column of a section's table, and the other columns."""
    page = (DEPLOY / "README.md").read_text("utf-8")
    text = only(rf"(?s)\n## {section}\n(.*?)(?=\n## )", page)
    for line in text.splitlines():
        first, *rest = line.strip("|").split("|")
        if line.startswith("| `"):
            yield re.findall(r"`([\w/]+)`", first), [each.strip("` ") for each in rest]


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
    page = (DEPLOY / "README.md").read_text("utf-8")
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


def test_the_page_has_every_parameter_with_its_default_and_range():
    page = {
        name: (columns[0], columns[1].replace("`", ""))
        for names, columns in rows("Parameters")
        for name in names
    }
    known = parameters()
    assert set(page) == set(known)
    numbers = {key: told for key, told in known.items() if any(told)}
    assert {key: page[key] for key in numbers} == numbers


def test_the_page_has_every_metric():
    page = [name for names, _ in rows("Metrics") for name in names]
    assert len(page) == len(set(page))
    assert set(page) == metrics()


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
