"""CMake links the libraries of a Mesos so that programs find them at run time."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MESOS_CMAKE = ROOT / "mesos-module/cmake/Mesos.cmake"
NEEDED = (
    "include/mesos/allocator/allocator.hpp",
    "include/process/process.hpp",
    "include/grpcpp/grpcpp.h",
    "include/google/protobuf/message.h",
    "bin/protoc",
    "bin/grpc_cpp_plugin",
)


class Prefix:
    """The part of mesos-root's prefix that CMake reads; the libraries are built elsewhere."""

    def __init__(self, at: Path, tool) -> None:
        self.at, self.tool = at, tool
        self.root, self.built = at / "root", at / "built"
        for name in NEEDED:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).touch()
        (self.root / "include/mesos/version.hpp").write_text('#define MESOS_VERSION "1.11.0"\n')
        (self.root / "lib").mkdir()
        self.built.mkdir()

    def library(self, name: str, code: str, *needed: Path) -> Path:
        """Build a library as CMake does: its plain name is a symbolic link to the versioned one."""
        library, source = self.built / f"{name}.0", self.built / f"{name}.cpp"
        source.write_text(code)
        command = [self.tool("c++"), "-shared", "-fPIC", f"-Wl,-soname,{library.name}"]
        command += [f"-Wl,-rpath,{self.built}", "-o", library, source, *needed]
        subprocess.run(command, check=True)
        (self.built / name).symlink_to(library.name)
        return library

    def gather(self, name: str) -> None:
        """Put a link to a library into the prefix."""
        (self.root / "lib" / name).symlink_to(self.built / name)

    def run(self, code: str) -> tuple[int, str]:
        """Build a program with the libraries of this Mesos, and run it."""
        project, tree = self.at / "project", self.at / "tree"
        project.mkdir()
        (project / "main.cpp").write_text(code)
        (project / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.16)\nproject(program CXX)\n"
            f'include("{MESOS_CMAKE}")\n'
            "add_executable(program main.cpp)\n"
            "target_compile_options(program PRIVATE -Wall -Werror)\n"
            "target_link_libraries(program mesos ${MESOS_LIBRARIES})\n"
        )
        cmake = self.tool("cmake")
        command = [cmake, "-S", project, "-B", tree, f"-DMESOS_ROOT={self.root}"]
        subprocess.run(command, check=True, capture_output=True)
        done = subprocess.run([cmake, "--build", tree], check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        done = subprocess.run([tree / "program"], capture_output=True, text=True, check=False)
        return done.returncode, done.stderr


@pytest.fixture
def prefix(tmp_path: Path, tool) -> Prefix:
    return Prefix(tmp_path, tool)


def test_a_program_finds_a_library_by_the_name_that_its_builder_gave_it(prefix):
    """CMake's libmesos.so is a link to libmesos.so.0, and a prefix has a link to that link."""
    prefix.library("libmesos.so", "int mesos() { return 42; }\n")
    prefix.gather("libmesos.so")
    assert prefix.run("int mesos();\nint main() { return mesos(); }\n") == (42, "")


def test_a_program_may_call_a_library_that_only_grpc_names(prefix):
    """Headers of gRPC 1.51 call Abseil, whose libraries a prefix does not contain."""
    absl = prefix.library("libabsl_synchronization.so", "int lock() { return 42; }\n")
    code = "int lock();\nint call() { return lock(); }\n"
    prefix.library("libgrpc++_unsecure.so", code, absl)
    prefix.gather("libgrpc++_unsecure.so")
    code = "int lock();\nint call();\nint main() { return call() == 42 ? lock() : 1; }\n"
    assert prefix.run(code) == (42, "")


def test_a_role_of_a_framework_is_read_without_a_warning(prefix):
    """As protobuf 3.21 declares `FrameworkInfo.role`, and 3.5 does not."""
    header = prefix.root / "include/mesos/mesos.pb.h"
    header.write_text("[[deprecated]] inline int role() { return 42; }\n")
    code = "#include <mesos/mesos.pb.h>\nint main() { return role(); }\n"
    assert prefix.run(code) == (42, "")
