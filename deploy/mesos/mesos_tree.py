"""A build tree of Mesos, and the places in it of the files that the module needs.

Reads trees of CMake and of autotools, with bundled libraries or the system's. Needs only Python
3.9.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

SYSTEM_INCLUDE = ["/usr/local/include", "/usr/include"]
SYSTEM_LIB = ["/usr/local/lib", "/usr/lib/*-linux-gnu", "/usr/lib64", "/usr/lib"]
SYSTEM_BIN = ["/usr/local/bin", "/usr/bin"]

UNPACKED = "3rdparty/{n}-{v}/src/{n}-{v}"  # sources unpacked by CMake's ExternalProject
BUILT = UNPACKED + "-build"

# Identifies CMake's cache as one of Mesos: forks rename the project, but keep this option.
OPTION_OF_MESOS = "REBUNDLED"


class Part(NamedTuple):
    """A library or program with which Mesos was built.

    `file` is searched in the directory `cmake` or `autotools`, depending on the layout of the tree.
    {n} and {v} are the names of the library and of the version that Mesos bundles.
    """

    library: str
    file: str
    cmake: str
    autotools: str
    package: str


HEADERS = {  # links below include/; those with a question mark are optional
    ("boost",): Part("boost", "boost/version.hpp", UNPACKED, "3rdparty/{n}-{v}", "libboost-dev"),
    ("glog", "gflags?"): Part(
        "glog",
        "glog/logging.h",
        UNPACKED + "-install/include",
        "3rdparty/{n}-{v}/src",
        "libgoogle-glog-dev",
    ),
    ("picojson.h",): Part("picojson", "picojson.h", UNPACKED, "3rdparty/{n}-{v}", "picojson-dev"),
    ("rapidjson",): Part(
        "rapidjson",
        "rapidjson/document.h",
        UNPACKED + "/include",
        "3rdparty/{n}-{v}/include",
        "rapidjson-dev",
    ),
    ("google",): Part(
        "protobuf",
        "google/protobuf/stubs/common.h",
        UNPACKED + "/src",
        "3rdparty/{n}-{v}/src",
        "libprotobuf-dev",
    ),
    ("grpcpp", "grpc++", "grpc"): Part(
        "grpc",
        "grpcpp/grpcpp.h",
        UNPACKED + "/include",
        "3rdparty/{n}-{v}/include",
        "libgrpc++-dev",
    ),
}

PROGRAMS = (
    Part("protobuf", "protoc", BUILT, "3rdparty/{n}-{v}/src", "protobuf-compiler"),
    Part("grpc", "grpc_cpp_plugin", BUILT, "3rdparty/{n}-{v}/bins/opt", "protobuf-compiler-grpc"),
)

# In builds with autotools, libmesos contains the bundled libraries.
LIBRARIES = (
    Part("protobuf", "libprotobuf{,d}.so", BUILT, "", ""),
    Part("grpc", "libgrpc++{s}.so", BUILT, "", ""),
    Part("grpc", "libgrpc{s}.so", BUILT, "", ""),
    Part("grpc", "libgpr.so", BUILT, "", ""),
    Part("glog", "libglog.so", UNPACKED + "-install/lib", "", ""),
)


class Refused(Exception):  # noqa: N818
    """The request cannot be carried out; the message says why, and names the fix."""


@dataclass
class Tree:
    """A build tree: its layout and configuration.

    `bundled`: whether Mesos uses its own copy of a library, by lower-case name, if configured.
    `definitions`: macros that affect Mesos's headers.
    """

    layout: str
    build: Path
    source: Path
    definitions: list[str] = field(default_factory=list)
    include: list[str] = field(default_factory=list)
    lib: list[str] = field(default_factory=list)
    programs: dict[str, str] = field(default_factory=dict)
    bundled: dict[str, bool] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def has_tls(self) -> bool:
        """Whether Mesos, and therefore its gRPC, was built with TLS."""
        return "USE_SSL_SOCKET=1" in self.definitions

    @property
    def is_finished(self) -> bool:
        """Whether Mesos was linked, which means that the build is complete."""
        return (self.build / "src" / ".libs" / "libmesos.so").exists()

    @property
    def make(self) -> str:
        """The command that finishes the build."""
        return f"cmake --build {self.build}" if self.layout == "cmake" else f"make -C {self.build}"


# ------------------------------------------------------------------------------ trees


def find_tree(build: Path) -> Tree:
    """Read the layout and configuration of a build tree."""
    if not build.is_dir():
        raise Refused(f"{build} is not a directory; name the tree where Mesos was built")
    if (build / "CMakeCache.txt").is_file():
        tree = cmake_tree(build)
    elif (build / "config.status").is_file() and (build / "src" / "Makefile").is_file():
        tree = autotools_tree(build)
    elif (build / "configure.ac").is_file() and (build / "src" / "master").is_dir():
        raise Refused(
            f"{build} contains Mesos's sources, but no build; name the tree where cmake or "
            f"configure was run, for example {build / 'build'}"
        )
    elif (build / "include" / "mesos" / "version.hpp").is_file():
        raise Refused(
            f"{build} is an installation of Mesos, without some headers and the code generators; "
            "name the tree where it was built"
        )
    else:
        raise Refused(
            f"{build} has neither CMakeCache.txt nor config.status with src/Makefile, so no "
            "Mesos was built there; name the tree where cmake or configure was run"
        )
    if not (tree.source / "include" / "mesos" / "mesos.proto").is_file():
        raise Refused(
            f"{build} was built from {tree.source}, which no longer contains Mesos's sources; "
            "put the same version there again"
        )
    tree.versions = bundled_versions(tree.source)
    return tree


def cmake_tree(build: Path) -> Tree:
    """Read CMake's cache."""
    text = (build / "CMakeCache.txt").read_text("utf-8", "replace")
    cache = dict(re.findall(r"(?m)^([\w-]+):\w+=(.*)$", text))
    if OPTION_OF_MESOS not in cache:
        raise Refused(f"{build} was made by CMake for {cache.get('CMAKE_PROJECT_NAME')}, not Mesos")
    if not is_on(cache.get("BUILD_SHARED_LIBS", "ON")):
        raise Refused(
            f"{build} was configured with BUILD_SHARED_LIBS=OFF, so its master cannot load "
            "modules; configure it with -DBUILD_SHARED_LIBS=ON"
        )
    switches = {"ENABLE_SSL": "USE_SSL_SOCKET=1", "ENABLE_LIBEVENT": "USE_LIBEVENT=1"}
    return Tree(
        "cmake",
        build,
        Path(cache["CMAKE_HOME_DIRECTORY"]),
        [macro for name, macro in switches.items() if is_on(cache.get(name, "OFF"))],
        [f"{cache['BOOST_ROOT_DIR']}/include"] if cache.get("BOOST_ROOT_DIR") else [],
    )


def is_on(text: str) -> bool:
    """Read a switch as CMake does."""
    return text.upper() in {"1", "ON", "YES", "TRUE", "Y"}


def autotools_tree(build: Path) -> Tree:
    """Read what configure wrote."""
    makefile = (build / "src" / "Makefile").read_text("utf-8", "replace")
    given = dict(re.findall(r"(?m)^(\w+) = (.*)$", makefile))
    status = (build / "config.status").read_text("utf-8", "replace")
    bundled = re.findall(r'(?m)^S\["WITH_BUNDLED_(\w+)_TRUE"\]="(#?)"', status)
    macros = ("USE_SSL_SOCKET", "USE_LIBEVENT")
    return Tree(
        "autotools",
        build,
        Path(os.path.normpath(given.get("abs_top_srcdir", str(build)))),
        [f"{macro}=1" for macro in macros if f"-D{macro}=1" in given.get("DEFS", "")],
        re.findall(r"-I(\S+)", given.get("CPPFLAGS", "")),
        re.findall(r"-L(\S+)", given.get("LDFLAGS", "")),
        {
            "protoc": given.get("PROTOCOMPILER", ""),
            "grpc_cpp_plugin": given.get("GRPC_CXX_PLUGIN", ""),
        },
        {name.lower(): not hidden for name, hidden in bundled},
    )


def bundled_versions(source: Path) -> dict[str, str]:
    """Read the versions of the libraries that Mesos bundles, by lower-case name."""
    versions: dict[str, str] = {}
    for name, pattern in (
        ("versions.am", r"(?m)^(\w+)_VERSION *= *(\S+)"),
        ("cmake/Versions.cmake", r'(?m)^set\((\w+)_VERSION +"([^"]+)"\)'),
    ):
        path = source / "3rdparty" / name
        if path.is_file():
            for library, version in re.findall(pattern, path.read_text("utf-8")):
                versions.setdefault(library.lower(), version)
    return versions


# ------------------------------------------------------------------------------ parts of a tree


def names_of(tree: Tree, file: str) -> list[str]:
    """Expand a file name: gRPC's variant without TLS, protobuf's debug variant."""
    plain = file.replace("{s}", "" if tree.has_tls else "_unsecure")
    return [plain.replace("{,d}", mark) for mark in ("", "d")]


def own_directory(tree: Tree, part: Part) -> Path | None:
    """The directory of Mesos's own copy of a part; None if the system's is used."""
    pattern = part.cmake if tree.layout == "cmake" else part.autotools
    version = tree.versions.get(part.library, "")
    if not version or not tree.bundled.get(part.library, True):
        return None
    if part.library not in tree.bundled and takes_the_systems(tree, f"{part.library}-{version}"):
        return None
    return tree.build / pattern.format(n=part.library, v=version) if pattern else None


def takes_the_systems(tree: Tree, library: str) -> bool:
    """Whether Mesos uses the system's copy of a library, if that is not configured.

    It does if there is no directory for its own copy, or if a finished build by CMake left that
    directory empty.
    """
    home = tree.build / "3rdparty" / library
    unpacked = home / "src" / library
    if not unpacked.is_dir():
        return not home.is_dir()
    return tree.is_finished and not any(unpacked.iterdir())


def find(tree: Tree, part: Part, system: list[str]) -> Path | None:
    """Find a part's file in the tree, or in the system if Mesos uses the system's copy."""
    own = own_directory(tree, part)
    places = [own] if own else [each for place in system for each in directories(place)]
    for place in places:
        for name in names_of(tree, part.file):
            if (place / name).exists():
                return place / name
    return None


def directories(pattern: str) -> list[Path]:
    """Find the directories that match an absolute path with asterisks."""
    return sorted(Path("/").glob(pattern.lstrip("/")))


def missing(tree: Tree, part: Part) -> str:
    """An error message for a missing part, with the fix."""
    own = own_directory(tree, part)
    if own:
        return (
            f"{part.file}: Mesos's own {part.library} {tree.versions[part.library]} is not built "
            f"(not found in {own}); finish the build: {tree.make}"
        )
    return (
        f"{part.file}: this Mesos uses the system's {part.library}, which is not installed; "
        f"apt-get install {part.package}, in the version with which Mesos was built"
    )


def gather(tree: Tree) -> tuple[dict[str, Path], list[str]]:
    """Find all parts; returns the targets of the prefix's links by name, and the errors."""
    links: dict[str, Path] = {}
    wrong: list[str] = []
    for below in (tree.source / "include", tree.build / "include"):
        for path in sorted(below.rglob("*")):
            if path.suffix in {".h", ".hpp"}:
                links[f"include/{path.relative_to(below)}"] = path
    if "include/mesos/mesos.pb.h" not in links or "include/mesos/version.hpp" not in links:
        return links, [f"mesos/mesos.pb.h: Mesos is not built yet; finish the build: {tree.make}"]
    for name, directory in (("process", "libprocess"), ("stout", "stout")):
        links[f"include/{name}"] = tree.source / "3rdparty" / directory / "include" / name
    for names, part in HEADERS.items():
        file = find(tree, part, tree.include + SYSTEM_INCLUDE)
        if not file:
            wrong.append(missing(tree, part))
            continue
        place = Path(str(file)[: -len(part.file)])
        for name in names:
            if not name.endswith("?") or (place / name[:-1]).exists():
                links[f"include/{name.rstrip('?')}"] = place / name.rstrip("?")
    for part in PROGRAMS:
        given = tree.programs.get(part.file, "")
        program = find(tree, part, [str(Path(given).parent)] if given else SYSTEM_BIN)
        if program:
            links[f"bin/{part.file}"] = program
        else:
            wrong.append(missing(tree, part))
    links.update(libraries(tree))
    return links, wrong


def libraries(tree: Tree) -> dict[str, Path]:
    """Find the libraries with which the module's tests are linked, if they exist."""
    links: dict[str, Path] = {}
    for place, name in (
        ("src/.libs", "libmesos.so"),
        ("src", "libmesos-protobufs.so"),
        ("src/.libs", "libmesos-protobufs.so"),
        ("3rdparty/libprocess/src", "libprocess.so"),
    ):
        if (tree.build / place / name).exists():
            links[f"lib/{name}"] = tree.build / place / name
    for part in LIBRARIES:
        if tree.layout == "autotools" and tree.bundled.get(part.library, True):
            continue
        path = find(tree, part, tree.lib + SYSTEM_LIB)
        if path:
            links[f"lib/{path.name.replace('bufd.so', 'buf.so')}"] = path
    return links
