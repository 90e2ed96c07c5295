"""mesos-root gathers what a module needs from both kinds of trees, and errors name the fix.

The trees here have the directories that Mesos 1.11.0's build files create, with a small file in
each place.
"""

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tiers import long

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "deploy" / "mesos" / "mesos-root"

VERSIONS = {
    "boost": "1.65.0",
    "glog": "0.4.0",
    "grpc": "1.10.0",
    "picojson": "1.3.0",
    "protobuf": "3.5.0",
    "rapidjson": "1.1.0",
}
SHARED = "libprotobuf.so", "libgpr.so", "libgrpc_unsecure.so", "libgrpc++_unsecure.so"


@pytest.fixture(autouse=True)
def headers_of_the_system(tmp_path_factory, monkeypatch) -> None:
    """Stand-ins for the headers that mesos-root looks for, so that none must be installed."""
    place = tmp_path_factory.mktemp("headers")
    needed = re.findall(r'"([\w/]+\.h)": "[\w-]+-dev ', PROGRAM.read_text("utf-8"))
    assert len(needed) == 3
    for header in needed:
        lay(place / header)
    monkeypatch.setenv("CPLUS_INCLUDE_PATH", str(place))


def lay(path: Path, text: str = "", *, runs: bool = False) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    path.chmod(0o755 if runs else 0o644)
    return path


class Trees:
    """The sources of a Mesos, and its build directory."""

    def __init__(self, at: Path, layout: str, version: str = "1.11.0") -> None:
        self.layout = layout
        self.source, self.build = at / "mesos", at / "mesos" / "build"
        for header in (
            "include/mesos/allocator/allocator.hpp",
            "3rdparty/libprocess/include/process/process.hpp",
            "3rdparty/stout/include/stout/stringify.hpp",
        ):
            lay(self.source / header, "#pragma once\n")
        lay(self.source / "include/mesos/mesos.proto")
        lay(self.source / "configure.ac")
        lay(self.source / "src/master/main.cpp")
        lines = [f"{name.upper()}_VERSION = {each}" for name, each in VERSIONS.items()]
        lay(self.source / "3rdparty/versions.am", "# a comment\n\n" + "\n".join(lines) + "\n")
        lines = [f'set({name.upper()}_VERSION "{each}")' for name, each in VERSIONS.items()]
        lay(self.source / "3rdparty/cmake/Versions.cmake", "\n".join(lines) + "\n")
        lay(self.build / "include/mesos/version.hpp", f'#define MESOS_VERSION "{version}"\n')
        lay(
            self.build / "include/mesos/mesos.pb.h",
            "#if GOOGLE_PROTOBUF_VERSION < 3005000\n#error\n#endif\n"
            "#if 3005000 < GOOGLE_PROTOBUF_MIN_PROTOC_VERSION\n#error\n#endif\n",
        )
        lay(self.build / "src/.libs/libmesos.so")
        for name in VERSIONS:
            self.bring(name)

    def home(self, library: str, built: str = "") -> Path:
        """The directory in which Mesos unpacks or builds a library."""
        versioned = f"{library}-{VERSIONS[library]}"
        home = self.build / "3rdparty" / versioned
        return home if self.layout == "autotools" else home / "src" / (versioned + built)

    def bring(self, library: str) -> None:
        """Put a bundled library where its build leaves it."""
        is_cmake = self.layout == "cmake"
        home = self.home(library)
        if library == "boost":
            lay(home / "boost/version.hpp")
        elif library == "glog":
            glog = self.home("glog", "-install") / "include" if is_cmake else home / "src"
            lay(glog / "glog/logging.h")
            if is_cmake:
                lay(self.home("glog", "-install") / "lib/libglog.so")
        elif library == "picojson":
            lay(home / "picojson.h")
        elif library == "rapidjson":
            lay(home / "include/rapidjson/document.h")
        elif library == "protobuf":
            self.protobuf(home / "src", self.home(library, "-build") if is_cmake else home / "src")
        else:
            for header in ("grpcpp/grpcpp.h", "grpc++/grpc++.h", "grpc/grpc.h"):
                lay(home / "include" / header)
            plugin = self.home(library, "-build") if is_cmake else home / "bins/opt"
            lay(plugin / "grpc_cpp_plugin", "#!/bin/sh\nexit 1\n", runs=True)
        if is_cmake:
            for name in SHARED:
                if name.startswith("libprotobuf") == (library == "protobuf"):
                    lay(self.home("protobuf" if "protobuf" in name else "grpc", "-build") / name)

    def protobuf(self, include: Path, programs: Path, version: str = "3.5.0") -> None:
        """Create headers and the compiler of a protobuf."""
        major, minor, patch = map(int, version.split("."))
        number = major * 1_000_000 + minor * 1000 + patch
        common = f"#define GOOGLE_PROTOBUF_VERSION {number}\n"
        lay(include / "google/protobuf/stubs/common.h", common)
        lay(include / "google/protobuf/message.h")
        lay(programs / "protoc", f'#!/bin/sh\necho "libprotoc {version}"\n', runs=True)

    def configure(self, *, system: tuple[str, ...] = (), ssl: bool = False, **given: str) -> None:
        """Write the files that cmake or configure leaves behind."""
        if self.layout == "cmake":
            cache = {"CMAKE_PROJECT_NAME": "Mesos", "CMAKE_HOME_DIRECTORY": str(self.source)}
            cache |= {
                "REBUNDLED": "ON",
                "BUILD_SHARED_LIBS": "TRUE",
                "ENABLE_SSL": "ON" if ssl else "OFF",
                **given,
            }
            lines = [f"{name}:STRING={text}" for name, text in cache.items()]
            lay(self.build / "CMakeCache.txt", "\n".join(["# of CMake", *lines, ""]))
            return
        status = [
            f'S["WITH_BUNDLED_{name.upper()}_TRUE"]="{"#" * (name in system)}"' for name in VERSIONS
        ]
        lay(self.build / "config.status", "\n".join(["#!/bin/sh", *status, ""]))
        defines = '-DPACKAGE=\\"mesos\\" -DHAVE_CXX11=1' + " -DUSE_SSL_SOCKET=1" * ssl
        variables = {"DEFS": defines, "abs_top_srcdir": f"{self.build}/..", **given}
        lines = [f"{name} = {text}" for name, text in variables.items()]
        lay(self.build / "src/Makefile", "\n".join([*lines, ""]))


def gather(*arguments: Path, **environment: str) -> tuple[int, str]:
    """Run the program; returns its status and its output."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    return done.returncode, done.stdout + done.stderr


def configure_module(tool, project: Path, tmp_path: Path, root: Path):
    """Let CMake configure the module of a checkout for a MESOS_ROOT."""
    return subprocess.run(
        [
            tool("cmake"),
            *("-S", str(project / "mesos-module"), "-B", str(tmp_path / "module")),
            f"-DMESOS_ROOT={root}",
        ],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(params=["cmake", "autotools"])
def trees(request, tmp_path, tool) -> Trees:
    tool("c++")
    made = Trees(tmp_path, request.param)
    made.configure()
    return made


def test_everything_the_module_needs_is_in_the_prefix(trees, tmp_path):
    status, said = gather(trees.build, tmp_path / "root")
    assert status == 0, said
    assert f"{tmp_path}/root for Mesos 1.11.0 ({trees.layout}, protobuf 3.5.0)" in said
    assert f"make module MESOS_ROOT={tmp_path}/root" in said
    here = {
        str(path.relative_to(tmp_path / "root")): path.resolve()
        for path in (tmp_path / "root").rglob("*")
        if path.is_symlink()
    }
    headers = {"boost", "glog", "google", "grpc", "grpc++", "grpcpp", "picojson.h", "process"}
    headers |= {"rapidjson", "stout", "mesos/version.hpp", "mesos/mesos.pb.h"}
    headers |= {"mesos/allocator/allocator.hpp"}
    libraries = {"libmesos.so"}
    if trees.layout == "cmake":
        libraries |= {*SHARED, "libglog.so"}
    assert set(here) == {
        *(f"include/{name}" for name in headers),
        *(f"lib/{name}" for name in libraries),
        "bin/protoc",
        "bin/grpc_cpp_plugin",
    }
    assert all(path.exists() for path in here.values())
    assert here["include/stout"] == trees.source / "3rdparty/stout/include/stout"
    assert here["lib/libmesos.so"] == trees.build / "src/.libs/libmesos.so"


def test_without_a_prefix_it_lies_in_the_tree(trees):
    status, said = gather(trees.build)
    assert status == 0, said
    assert (trees.build / "mesos-root" / "bin" / "protoc").is_file()


@pytest.mark.parametrize("ssl", [True, *long(False)])
def test_cmake_takes_the_prefix(trees, tmp_path, tool, ssl):
    trees.configure(ssl=ssl)
    if ssl and trees.layout == "cmake":
        for name in ("libgrpc.so", "libgrpc++.so"):
            lay(trees.home("grpc", "-build") / name)
    (trees.build / "src/.libs/libmesos.so").unlink()  # otherwise CMake looks for GoogleTest
    status, said = gather(trees.build, tmp_path / "root")
    assert status == 0, said
    assert "no libmesos.so yet" in said
    done = configure_module(tool, ROOT, tmp_path, tmp_path / "root")
    assert done.returncode == 0, done.stderr
    assert f"Mesos 1.11.0 of {tmp_path}/root, TLS {'ON' if ssl else 'OFF'}" in done.stdout
    commands = json.loads((tmp_path / "module/compile_commands.json").read_text("utf-8"))
    (line,) = {
        each["command"] for each in commands if each["file"].endswith("/process_effects.cpp")
    }
    assert ("-DUSE_SSL_SOCKET=1" in line) == ssl


def test_cmake_says_what_to_do_with_a_build_tree(trees, tmp_path, tool):
    done = configure_module(tool, ROOT, tmp_path, trees.build)
    assert done.returncode != 0
    said = " ".join(done.stderr.split())
    assert "which is a build tree, not a prefix; gather one with" in said


def test_libraries_of_the_system_are_taken_where_mesos_took_them(tmp_path):
    trees = Trees(tmp_path, "autotools")
    system = tmp_path / "elsewhere"
    shutil.rmtree(trees.home("protobuf"))
    shutil.rmtree(trees.home("grpc"))
    trees.protobuf(system / "include", system / "bin")
    for header in ("grpcpp/grpcpp.h", "grpc++/grpc++.h", "grpc/grpc.h"):
        lay(system / "include" / header)
    lay(system / "bin/grpc_cpp_plugin", "#!/bin/sh\nexit 1\n", runs=True)
    lay(system / "lib/libprotobuf.so")
    trees.configure(
        system=("protobuf", "grpc"),
        CPPFLAGS=f"-I{system}/include -DNDEBUG",
        LDFLAGS=f"-L{system}/lib",
        PROTOCOMPILER=f"{system}/bin/protoc",
        GRPC_CXX_PLUGIN=f"{system}/bin/grpc_cpp_plugin",
    )
    root = tmp_path / "root"
    status, said = gather(trees.build, root)
    assert status == 0, said
    assert (root / "include/google").resolve() == system / "include/google"
    assert (root / "include/grpcpp").resolve() == system / "include/grpcpp"
    assert (root / "bin/protoc").resolve() == system / "bin/protoc"
    assert (root / "lib/libprotobuf.so").resolve() == system / "lib/libprotobuf.so"
    assert (root / "include/boost").resolve() == trees.home("boost") / "boost"


def test_a_fork_may_have_another_name(tmp_path, tool):
    tool("c++")
    trees = Trees(tmp_path, "cmake")
    trees.configure(CMAKE_PROJECT_NAME="aventer-mesos")
    assert gather(trees.build, tmp_path / "root")[0] == 0


class System:
    """The module that reads trees, with directories of the test in place of the machine's."""

    def __init__(self, at: Path, monkeypatch) -> None:
        self.at = at
        monkeypatch.syspath_prepend(PROGRAM.parent)
        self.module = importlib.import_module("mesos_tree")
        for name in ("include", "lib", "bin"):
            monkeypatch.setattr(self.module, f"SYSTEM_{name.upper()}", [str(at / name)])

    def gather(self, trees: Trees) -> tuple[dict[str, Path], list[str]]:
        return self.module.gather(self.module.find_tree(trees.build))


@pytest.fixture
def system(tmp_path, monkeypatch) -> System:
    return System(tmp_path / "system", monkeypatch)


def test_empty_directories_of_a_finished_build_mean_the_systems_libraries(system, tmp_path):
    """CMake creates directories for Mesos's own libraries before it knows which are built."""
    trees = Trees(tmp_path, "cmake")
    trees.configure()
    for library in ("boost", "glog", "grpc", "protobuf"):
        shutil.rmtree(trees.home(library).parent.parent)
        trees.home(library).mkdir(parents=True)
    trees.protobuf(system.at / "include", system.at / "bin")
    for header in ("boost/version.hpp", "glog/logging.h", "grpcpp/grpcpp.h"):
        lay(system.at / "include" / header)
    for file in ("bin/grpc_cpp_plugin", "lib/libprotobuf.so"):
        lay(system.at / file)
    links, wrong = system.gather(trees)
    assert wrong == []
    for name in ("include/boost", "include/glog", "include/google", "lib/libprotobuf.so"):
        assert links[name] == system.at / name

    (trees.build / "src/.libs/libmesos.so").unlink()
    _, wrong = system.gather(trees)
    assert len(wrong) == 6
    assert all("is not built" in each for each in wrong)


def test_missing_system_libraries_are_named_with_their_packages(system, tmp_path):
    trees = Trees(tmp_path, "autotools")
    trees.configure(system=("glog", "picojson"))
    _, wrong = system.gather(trees)
    assert [each.partition("which ")[2] for each in wrong] == [
        f"is not installed; apt-get install {package}, in the version with which Mesos was built"
        for package in ("libgoogle-glog-dev", "picojson-dev")
    ]


def test_a_part_that_is_not_built_is_named_with_all_others(trees, tmp_path):
    shutil.rmtree(trees.home("rapidjson"))
    for name in ("protoc", "grpc_cpp_plugin"):
        (path,) = trees.build.rglob(name)
        path.unlink()
    status, said = gather(trees.build, tmp_path / "root")
    assert status == 1
    assert "rapidjson/document.h: Mesos's own rapidjson 1.1.0 is not built" in said
    assert "protoc: Mesos's own protobuf 3.5.0 is not built" in said
    assert "grpc_cpp_plugin: Mesos's own grpc 1.10.0 is not built" in said
    command = "cmake --build" if trees.layout == "cmake" else "make -C"
    assert f"finish the build: {command} {trees.build}" in said
    assert not (tmp_path / "root").exists()


def version_of(trees: Trees) -> Path:
    return trees.build / "include/mesos/version.hpp"


def remove(name: str):
    return lambda trees: (trees.build / name).unlink()


REFUSALS = {
    "not a directory": (
        lambda trees: shutil.rmtree(trees.build),
        "is not a directory; name the tree where Mesos was built",
    ),
    "Mesos is not built": (
        remove("include/mesos/mesos.pb.h"),
        "mesos/mesos.pb.h: Mesos is not built yet; finish the build:",
    ),
    "too old": (
        lambda trees: lay(version_of(trees), '#define MESOS_VERSION "1.10.2"\n'),
        "Mesos 1.10.2: its allocator interface is different; 1.11 or later is required",
    ),
    "headers of another protobuf": (
        lambda trees: trees.protobuf(
            trees.home("protobuf") / "src",
            trees.home("protobuf", "-build" * (trees.layout == "cmake"))
            / ("" if trees.layout == "cmake" else "src"),
            "3.21.12",
        ),
        "Mesos's code was generated with 3.5.0, but the headers in",
    ),
    "another protoc": (
        lambda trees: lay(next(trees.build.rglob("protoc")), "#!/bin/sh\necho 3.6.1\n", runs=True),
        "--version says '3.6.1', but the headers are of protobuf 3.5.0",
    ),
    "a plugin that does not start": (
        lambda trees: lay(
            next(trees.build.rglob("grpc_cpp_plugin")),
            "#!/bin/sh\necho 'error while loading shared libraries: x.so' >&2; exit 127\n",
            runs=True,
        ),
        "does not start: error while loading shared libraries: x.so; set LD_LIBRARY_PATH",
    ),
    "sources are gone": (
        lambda trees: (trees.source / "include/mesos/mesos.proto").unlink(),
        "which no longer contains Mesos's sources; put the same version there again",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_refusal_states_the_fix_and_makes_nothing(trees, tmp_path, case):
    change, text = REFUSALS[case]
    change(trees)
    status, said = gather(trees.build, tmp_path / "root")
    assert status == 1
    assert text in said
    assert "Traceback" not in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mesos"]


def test_trees_of_another_kind_are_refused(tmp_path):
    trees = Trees(tmp_path, "cmake")
    for place, text in (
        (trees.source, "contains Mesos's sources, but no build; name the tree"),
        (trees.build, "is an installation of Mesos, without some headers and the code generators"),
        (trees.build / "src", "has neither CMakeCache.txt nor config.status with src/Makefile"),
    ):
        status, said = gather(place, tmp_path / "root")
        assert status == 1
        assert text in said
    lay(trees.build / "CMakeCache.txt", "CMAKE_PROJECT_NAME:STATIC=protobuf\n")
    assert "was made by CMake for protobuf, not Mesos" in gather(trees.build)[1]
    trees.configure(BUILD_SHARED_LIBS="OFF")
    assert "configure it with -DBUILD_SHARED_LIBS=ON" in gather(trees.build)[1]


def test_a_missing_compiler_and_missing_headers_of_the_system_are_named(
    trees, tmp_path, tool, monkeypatch
):
    monkeypatch.delenv("CPLUS_INCLUDE_PATH")
    status, said = gather(trees.build, CXX="no-such-compiler")
    assert status == 1
    assert "no-such-compiler: no such compiler; apt-get install g++, or set CXX" in said
    bare = lay(tmp_path / "bare", f'#!/bin/sh\nexec {tool("c++")} -nostdinc "$@"\n', runs=True)
    status, said = gather(trees.build, CXX=str(bare))
    assert status == 1
    assert "curl/curl.h: Mesos's headers include it; apt-get install libcurl4-openssl-dev" in said
    assert "zlib.h: Mesos's headers include it; apt-get install zlib1g-dev" in said


def test_only_its_own_prefix_is_replaced(trees, tmp_path):
    other = lay(tmp_path / "other" / "precious").parent
    status, said = gather(trees.build, other)
    assert status == 1
    assert "is not empty, and was not created by mesos-root; name another prefix" in said
    assert (other / "precious").is_file()
    root = tmp_path / "root"
    assert gather(trees.build, root)[0] == 0
    (trees.build / "src/.libs/libmesos.so").unlink()
    assert gather(trees.build, root)[0] == 0
    assert not (root / "lib/libmesos.so").is_symlink()
    remove("include/mesos/mesos.pb.h")(trees)
    assert gather(trees.build, root)[0] == 1
    assert (root / "bin/protoc").is_file(), "what was there before stays when there is nothing new"


def test_the_image_has_all_that_the_module_is_built_from(trees, tmp_path, tool):
    """The files that the Dockerfile copies are enough for mesos-root and for CMake."""
    text = (ROOT / "deploy/mesos/Dockerfile").read_text("utf-8")
    admitted = (ROOT / "deploy/mesos/Dockerfile.dockerignore").read_text("utf-8").splitlines()
    image = tmp_path / "src"
    copied = re.findall(r"(?m)^COPY (?!--from)(.*) (\S+)$", text)
    for sources, target in copied:
        for source in sources.split():
            assert f"!{source}" in admitted
            into = image / target / (Path(source).name if target.endswith("/") else "")
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, into, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                into.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / source, into)
    assert "\nRUN DESTDIR=/module .ci/mesos-module " in text
    assert os.access(image / ".ci/mesos-module", os.X_OK)
    assert os.access(image / ".ci/debian-packages", os.X_OK)
    (trees.build / "src/.libs/libmesos.so").unlink()
    program = [sys.executable, str(image / "deploy/mesos/mesos-root"), str(trees.build)]
    subprocess.run([*program, str(tmp_path / "root")], check=True, capture_output=True)
    done = configure_module(tool, image, tmp_path, tmp_path / "root")
    assert done.returncode == 0, done.stderr


def test_the_page_names_the_packages_that_the_build_installs():
    script = (ROOT / ".ci" / "mesos-module").read_text("utf-8")
    (listed,) = re.findall(r"(?m)^packages=\((.*)\)$", script)
    page = (ROOT / "docs/tutorials/beside-a-master.md").read_text("utf-8")
    assert f"\n    {listed}    (libssl-dev)\n" in page
