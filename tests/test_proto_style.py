"""The wire format's own style: buf's STANDARD rules that matter here, and protoc 3.5.

The module's side is compiled by the protoc of the Mesos build it plugs into, as old as 3.5. The
rules run over descriptors fresh from proto/, so stale generated code cannot hide a finding.
"""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2

ROOT = Path(__file__).resolve().parent.parent / "proto"
FILES = sorted(str(path.relative_to(ROOT)) for path in ROOT.rglob("*.proto"))

PASCAL = re.compile(r"([A-Z][a-z0-9]*)+")
SNAKE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
UPPER = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Descriptors of every proto file, and protoc's output about them."""
    out = tmp_path_factory.mktemp("descriptors") / "set.binpb"
    protoc = [sys.executable, "-m", "grpc_tools.protoc", "--proto_path", str(ROOT)]
    process = subprocess.run(
        [*protoc, "--descriptor_set_out", str(out), *FILES],
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()), process.stderr


@pytest.fixture(scope="module")
def files(compiled):
    return compiled[0].file


def walk_messages(parent, prefix: str) -> Iterator[tuple[str, descriptor_pb2.DescriptorProto]]:
    """Yield every message with its full name, map entries (which protoc names) left out."""
    children = parent.nested_type if hasattr(parent, "nested_type") else parent.message_type
    for message in children:
        if not message.options.map_entry:
            name = f"{prefix}.{message.name}"
            yield name, message
            yield from walk_messages(message, name)


def all_messages(files):
    return [pair for file in files for pair in walk_messages(file, file.package)]


def all_enums(files):
    top = [enum for file in files for enum in file.enum_type]
    return top + [enum for _, message in all_messages(files) for enum in message.enum_type]


def upper_snake(pascal: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", pascal).upper()


def test_protoc_has_no_warning(compiled):
    """An unused import is a warning, and the only sign of one."""
    assert not compiled[1]


def test_a_package_is_versioned_and_equals_its_directory(files):
    for file in files:
        assert re.fullmatch(r"[a-z][a-z0-9.]*\.v[1-9][0-9]*", file.package), file.name
        assert Path(file.name).parent.as_posix() == file.package.replace(".", "/")
        assert SNAKE.fullmatch(Path(file.name).stem), file.name


def test_nothing_is_newer_than_protoc_3_5(files):
    """Plain proto3: no editions, no explicit presence, no weak or public import."""
    for file in files:
        assert file.syntax == "proto3", file.name
        assert not file.public_dependency, file.name
        assert not file.weak_dependency, file.name
    for name, message in all_messages(files):
        optional = [field.name for field in message.field if field.proto3_optional]
        assert not optional, f"{name}: protoc 3.5 does not know optional {optional}"


def test_messages_are_pascal_case_and_fields_snake_case(files):
    for name, message in all_messages(files):
        assert PASCAL.fullmatch(message.name), name
        for part in [*message.field, *message.oneof_decl]:
            assert SNAKE.fullmatch(part.name), f"{name}.{part.name}"


def test_repeated_numbers_are_packed(files):
    """A column costs bytes, not objects: packing must not be disabled."""
    for name, message in all_messages(files):
        for field in message.field:
            unpacked = field.options.HasField("packed") and not field.options.packed
            assert not unpacked, f"{name}.{field.name}"


def test_enum_values_are_prefixed_and_zero_is_unspecified(files):
    for enum in all_enums(files):
        assert PASCAL.fullmatch(enum.name), enum.name
        assert not enum.options.allow_alias, enum.name
        prefix = upper_snake(enum.name)
        assert (enum.value[0].name, enum.value[0].number) == (f"{prefix}_UNSPECIFIED", 0)
        for value in enum.value:
            assert UPPER.fullmatch(value.name), value.name
            assert value.name.startswith(f"{prefix}_"), value.name


def test_services_and_their_methods_are_named_by_rule(files):
    for service in (service for file in files for service in file.service):
        assert PASCAL.fullmatch(service.name), service.name
        assert service.name.endswith("Service"), service.name
        for method in service.method:
            assert PASCAL.fullmatch(method.name), method.name


def test_each_method_has_its_own_request_and_response(files):
    """So that one method can grow a field without another growing it too."""
    methods = [method for file in files for service in file.service for method in service.method]
    for method in methods:
        assert method.input_type.rsplit(".")[-1] == f"{method.name}Request"
        assert method.output_type.rsplit(".")[-1] == f"{method.name}Response"
    uses = Counter(name for method in methods for name in (method.input_type, method.output_type))
    assert not [name for name, count in uses.items() if count > 1]


def test_every_file_is_compiled():
    """The package must contain every proto file; `make proto` reads only this tree."""
    assert {Path(name).parent.as_posix() for name in FILES} == {"allocator/v1"}
