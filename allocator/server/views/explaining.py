"""Explanations as operators read them; whoever asks waits, the core only copies."""

from allocator import explain
from allocator.near import suggestions
from allocator.server.engine.core_loop import CoreLoop
from allocator.v1 import explain_pb2 as pb
from allocator.wire.codec.proto_types import write_fields

CYCLES_MAX = 256

NAME_SHOWN = 200
"""Characters of a name that there is not, which may be as long as a message."""

SUBJECTS = ("framework", "role", "agent")


def asked_for(request: pb.ExplainRequest) -> tuple[str, str]:
    """Read what is to be explained: of what kind it is, and its name.

    Raises ValueError where it is nothing, or several things.
    """
    named = [(kind, getattr(request, kind)) for kind in SUBJECTS if getattr(request, kind)]
    if len(named) != 1:
        text = "name one framework, role or agent"
        raise ValueError(f"{' and '.join(kind for kind, _ in named) or 'nothing'} is given; {text}")
    if request.cycles > CYCLES_MAX:
        raise ValueError(f"cycles = {request.cycles}: at most {CYCLES_MAX} are kept")
    return named[0]


def take(loop: CoreLoop, kind: str, name: str) -> explain.Picture:
    """Copy what is needed; on the core's thread.

    Raises UnknownSubjectError where there is nobody of that name.
    """
    loop.look()
    return explain.take(loop.allocator, kind, name)


def unknown(error: explain.UnknownSubjectError, *, in_session: bool) -> str:
    """Say that there is nobody of that name, and whose names are near; on any thread."""
    near = "; no master has a session with this sidecar, its module decides meanwhile"
    if in_session:
        near = suggestions(error.name, error.known)
    name = error.name if len(error.name) <= NAME_SHOWN else f"{error.name[:NAME_SHOWN]}..."
    return f"{error.kind} = {name!r}: there is no such {error.kind}{near}"


def answer(picture: explain.Picture, kind: str, name: str, cycles: int) -> pb.ExplainResponse:
    """Explain; on any thread.

    `picture`: taken for this kind and name.
    `cycles`: 0: as many as usual.
    """
    found = explain.explain(picture, kind, name, *([cycles] if cycles else []))
    return write_fields(found, pb.ExplainResponse)
