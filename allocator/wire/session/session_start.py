"""The start of a session: reads the caller's hello, and the whole state in chunks."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, NamedTuple

from allocator.core import Options, SetWeights
from allocator.v1 import session_pb2 as pb
from allocator.wire.codec import proto_types, validation
from allocator.wire.codec.decode import READERS, read_bindings, read_filters
from allocator.wire.codec.encode import BYTES_LEAST, BYTES_MAX
from allocator.wire.codec.proto_types import each, part
from allocator.wire.codec.runs import agent_kinds
from allocator.wire.codec.validation import WireError, reject

PROTOCOL_VERSION = 2


@dataclass(frozen=True, slots=True)
class Greeting:
    """The caller, and its master's allocator options."""

    master_id: str
    instance_id: str
    instance_started_us: int
    options: Options = field(default_factory=Options)
    mesos_version: str = ""
    module_version: str = ""
    message_bytes_max: int = BYTES_MAX


def read_caller(message: pb.Hello) -> Greeting:
    """Read only the caller's identity, so that it can be rejected before the rest is read.

    Raises WireError: VERSION if the module's protocol version differs, otherwise VALUE.
    """
    if message.protocol_version != PROTOCOL_VERSION:
        spoken = f"is {message.protocol_version}; this sidecar speaks {PROTOCOL_VERSION}"
        code = pb.ErrorCode.ERROR_CODE_VERSION
        raise WireError(code, "protocol_version", f"{spoken}; install matching versions")
    return Greeting(
        master_id=validation.text(message.master_id, "master_id"),
        instance_id=validation.text(message.instance_id, "instance_id", empty=False),
        instance_started_us=validation.integer(
            message.instance_started_us, 0, 2**62, "instance_started_us"
        ),
        mesos_version=validation.text(message.mesos_version, "mesos_version"),
        module_version=validation.text(message.module_version, "module_version"),
        message_bytes_max=_read_bytes_max(message.message_bytes_max),
    )


def read_options(message: pb.Hello, caller: Greeting) -> Greeting:
    """Read the allocator options of the caller's master. Raises WireError."""
    if not message.HasField("options"):
        reject("options", "is missing; say how the master set up its allocator")
    return replace(caller, options=part(message.options, _read_options, "options"))


def _read_bytes_max(value: int) -> int:
    if not value:
        return BYTES_MAX
    return validation.integer(value, BYTES_LEAST, validation.UINT32_MAX, "message_bytes_max")


def _read_options(message: pb.AllocatorOptions) -> Options:
    interval = validation.time_ms(message.allocation_interval_ms, "allocation_interval_ms", least=1)
    return Options(
        allocation_interval_ms=interval,
        fairness_excluded=validation.texts(
            message.fairness_excluded_resource_names, "fairness_excluded_resource_names"
        ),
        filter_gpus=message.filter_gpu_resources,
        region=validation.text(message.domain.region, "domain.region"),
        minimum=tuple(each(message.minimum_any_of, proto_types.read_quantities, "minimum_any_of")),
    )


class SnapshotPart(NamedTuple):
    """A part of a chunk that is one event.

    `read`: makes the event from the message.
    `name`: the event's field in a batch if it contains frameworks' or agents' input; otherwise
        empty.
    """

    field: str
    message: Any
    read: Callable[[Any], Any]
    name: str = ""


def parts_of(message: pb.SnapshotChunk) -> Iterator[SnapshotPart]:
    """Yield the parts of a chunk, in the order in which to apply them."""
    if message.kinds or message.roles:
        yield SnapshotPart("", message, read_bindings)
    if message.weights:
        yield SnapshotPart("", message.weights, _read_weights)
    for index, quota in enumerate(message.quotas):
        yield SnapshotPart(f"quotas[{index}]", quota, proto_types.read_quota)
    for name, those in (("framework", message.frameworks), ("agent", message.agents)):
        event = f"add_{name}"
        for index, each_of in enumerate(those):
            yield SnapshotPart(f"{name}s[{index}]", each_of, READERS[event], event)
    for column, read in _COLUMNS.items():
        if message.HasField(column):
            yield SnapshotPart(column, getattr(message, column), read)


def grouped(parts: Iterable[SnapshotPart]) -> Iterator[list[SnapshotPart]]:
    """Group adjacent agents with the same kinds; other parts stay single."""

    def alike(part: SnapshotPart) -> object:
        return agent_kinds(part.message) if part.name == "add_agent" else part

    return (list(some) for _, some in groupby(parts, key=alike))


def _read_weights(messages: Any) -> SetWeights:  # noqa: ANN401
    return SetWeights(proto_types.read_weights(messages))


_COLUMNS: dict[Any, Callable[[Any], Any]] = {
    "holdings": READERS["hold"],
    "filters": read_filters,
    "exclusions": READERS["exclusions"],
    "whitelist": READERS["whitelist"],
}
