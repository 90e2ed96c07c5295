"""CMake takes the libraries of a Mesos so that programs find them when they run."""

import subprocess
from pathlib import Path

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


def test_a_program_finds_a_library_by_the_name_that_its_builder_gave_it(tmp_path: Path, tool):
    """CMake's libmesos.so is a link to libmesos.so.0, and a prefix has a link to that link."""
    built, root = tmp_path / "built", tmp_path / "root"
    for name in NEEDED:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    (root / "include/mesos/version.hpp").write_text('#define MESOS_VERSION "1.11.0"\n')
    (root / "lib").mkdir()
    built.mkdir()
    library, source = built / "libmesos.so.0", built / "mesos.cpp"
    source.write_text("int mesos() { return 42; }\n")
    command = [
        tool("c++"),
        "-shared",
        "-fPIC",
        f"-Wl,-soname,{library.name}",
        "-o",
        library,
        source,
    ]
    subprocess.run(command, check=True)
    (built / "libmesos.so").symlink_to(library.name)
    (root / "lib/libmesos.so").symlink_to(built / "libmesos.so")

    project = tmp_path / "project"
    project.mkdir()
    (project / "main.cpp").write_text("int mesos();\nint main() { return mesos(); }\n")
    (project / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(program CXX)\n"
        f'include("{MESOS_CMAKE}")\n'
        "add_executable(program main.cpp)\n"
        "target_link_libraries(program ${MESOS_LIBRARIES})\n"
    )
    tree = tmp_path / "tree"
    cmake = tool("cmake")
    command = [cmake, "-S", project, "-B", tree, f"-DMESOS_ROOT={root}"]
    subprocess.run(command, check=True, capture_output=True)
    subprocess.run([cmake, "--build", tree], check=True, capture_output=True)
    done = subprocess.run([tree / "program"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (42, "")
