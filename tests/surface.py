"""The public interface as a list: `python -m tests.surface` writes it to `tests/surface.txt`.

Commands and options, settings, metrics with their labels, calls, messages and fields (records of
the journal among them), parameters of the module, and what `allocator.core` and
`allocator.policies` export. A change of a line needs an entry in `CHANGELOG.md`.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor

from allocator import core, policies
from allocator.server.config import Config
from allocator.server.config.schema import keys
from allocator.v1 import (
    admin_pb2,
    explain_pb2,
    journal_pb2,
    session_pb2,
    settings_pb2,
    transcript_pb2,
    types_pb2,
)
from tests.cli.command_tree import LAB, commands, options

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "tests" / "surface.txt"

_FILES = (
    admin_pb2,
    explain_pb2,
    journal_pb2,
    session_pb2,
    settings_pb2,
    transcript_pb2,
    types_pb2,
)
_METRIC = re.compile(r"(?m)^\| `(mesos_allocator_\w+)` <a [^>]*></a> \| (\w+) \| ([\w, ]*) \|")
_PARAMETER = re.compile(r'\{"(\w+)",\s')


def surface() -> str:
    """Return the list as text, one line per item."""
    rows = [*_commands(), *_settings(), *_metrics(), *_parameters(), *_names()]
    for each in _FILES:
        rows += _protocol(each.DESCRIPTOR)
    return "".join(f"{row}\n" for row in rows)


def _commands() -> Iterator[str]:
    for path, command in commands():
        program = () if path[:1] == (LAB,) else ("mesos-allocator",)
        name = " ".join(("command", *program, *path))
        arguments = [each.name.upper() for each in command.params if each.opts[0][0] != "-"]
        yield " ".join([name, *arguments])
        yield from (f"{name} {option}" for option in sorted(options(command)))


def _settings() -> Iterator[str]:
    yield from (f"setting {section}.{key}" for section, key in keys(Config))


def _metrics() -> Iterator[str]:
    """Parse the reference, which a test compares with a scrape."""
    text = (ROOT / "docs" / "reference" / "metrics.md").read_text("utf-8")
    for name, kind, labels in _METRIC.findall(text):
        yield f"metric {name} {kind} {{{labels}}}"


def _parameters() -> Iterator[str]:
    text = (ROOT / "mesos-module" / "session" / "parameters.cpp").read_text("utf-8")
    yield from (f"parameter {name}" for name in dict.fromkeys(_PARAMETER.findall(text)))


def _names() -> Iterator[str]:
    for module in (core, policies):
        for name, value in sorted(vars(module).items()):
            home = getattr(value, "__module__", module.__name__)
            own = home is not None and home.startswith("allocator.")
            if own and not name.startswith("_") and not isinstance(value, ModuleType):
                yield f"name {module.__name__}.{name}"


def _protocol(file: FileDescriptor) -> Iterator[str]:
    for service in file.services_by_name.values():
        yield from (f"call {service.name}.{method.name}" for method in service.methods)
    for message in file.message_types_by_name.values():
        yield from _message(message)
    for enum in file.enum_types_by_name.values():
        yield from (f"value {each.name} = {each.number}" for each in enum.values)


def _message(message: Descriptor) -> Iterator[str]:
    name = message.full_name.removeprefix("allocator.v1.")
    for each in message.fields:
        yield f"field {name}.{each.name} = {each.number} {_type(each)}"
    for enum in message.enum_types:
        yield from (f"value {name}.{each.name} = {each.number}" for each in enum.values)
    for nested in message.nested_types:
        if not nested.GetOptions().map_entry:
            yield from _message(nested)


def _type(field: FieldDescriptor) -> str:
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        parts = (_plain_type(entry.fields_by_name[part]) for part in ("key", "value"))
        return f"map<{', '.join(parts)}>"
    return ("repeated " if field.is_repeated else "") + _plain_type(field)


def _plain_type(field: FieldDescriptor) -> str:
    named = field.message_type or field.enum_type
    if named is not None:
        return named.full_name.removeprefix("allocator.v1.")
    return {
        FieldDescriptor.TYPE_INT32: "int32",
        FieldDescriptor.TYPE_INT64: "int64",
        FieldDescriptor.TYPE_UINT32: "uint32",
        FieldDescriptor.TYPE_UINT64: "uint64",
        FieldDescriptor.TYPE_SINT32: "sint32",
        FieldDescriptor.TYPE_SINT64: "sint64",
        FieldDescriptor.TYPE_FIXED64: "fixed64",
        FieldDescriptor.TYPE_DOUBLE: "double",
        FieldDescriptor.TYPE_FLOAT: "float",
        FieldDescriptor.TYPE_BOOL: "bool",
        FieldDescriptor.TYPE_STRING: "string",
        FieldDescriptor.TYPE_BYTES: "bytes",
    }[field.type]


if __name__ == "__main__":
    KEPT.write_text(surface(), "utf-8")
