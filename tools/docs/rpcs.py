"""The reference of calls: the services and messages of `proto/`, with their comments."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PROTO = Path(__file__).resolve().parents[2] / "proto" / "allocator" / "v1"

INTRODUCTION = """\
# gRPC calls and messages

<!-- `make docs` writes this file. -->

This page lists the gRPC calls of a sidecar, and every message that they take and give. Use it to
write a client of your own. The files are in `proto/allocator/v1`. A sidecar also answers gRPC's
health checks and reflection.
"""

FILES = ("admin", "session", "explain", "settings", "types")

_RPC = re.compile(
    r"(?m)((?:^  //.*\n)*)^  rpc (\w+)\((stream )?(\w+)\) returns \((stream )?(\w+)\);"
)
_DEFINED = re.compile(r"(?ms)((?:^//[^\n]*\n)*)^(message|enum) (\w+) (\{\}|\{.*?^\})")
_SERVICE = re.compile(r"(?ms)((?:^//[^\n]*\n)*)^service (\w+) \{\n(.*?)^\}")


class Defined(NamedTuple):
    """A message or an enumeration as it stands in a file."""

    about: str
    name: str
    source: str


def page() -> str:
    """The whole page."""
    texts = {name: (PROTO / f"{name}.proto").read_text("utf-8") for name in FILES}
    lines = [INTRODUCTION]
    for text in texts.values():
        for about, name, body in _SERVICE.findall(text):
            lines += _service(about, name, body)
    for name, text in texts.items():
        lines.append(f"## Messages of {name}.proto\n")
        for each in _defined(text):
            lines += [f"### {each.name}\n", *([f"{each.about}\n"] if each.about else [])]
            lines += ["```proto", each.source, "```", ""]
    return "\n".join(lines)


def _service(about: str, name: str, body: str) -> Iterator[str]:
    yield f"## {name}\n"
    if about:
        yield f"{_plain(about)}\n"
    yield "| call | takes | gives | |"
    yield "|---|---|---|---|"
    for said, call, many, request, answers, response in _RPC.findall(body):
        cells = [f"{many}{_link(request)}", f"{answers}{_link(response)}", _plain(said)]
        yield f"| `{call}` | {' | '.join(cells)} |"
    yield ""


def _link(name: str) -> str:
    return f"[{name}](#{name.lower()})"


def _defined(text: str) -> Iterator[Defined]:
    for about, kind, name, body in _DEFINED.findall(text):
        yield Defined(_plain(about), name, f"{kind} {name} {body}")


def _plain(comment: str) -> str:
    words = " ".join(line.strip().removeprefix("//").strip() for line in comment.splitlines())
    return words.replace("|", "\\|").replace("<", "&lt;")
