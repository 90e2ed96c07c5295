"""Actions of tenants as lines of the brain's script; texts may contain any byte."""

from collections.abc import Iterable, Mapping
from urllib.parse import quote_from_bytes

from allocator.core import format_amount
from tests.hostile.words import (
    AgentWords,
    Amounts,
    Info,
    Request,
    Revive,
    Spans,
    Suppress,
    thousandths,
)

_CAPABILITIES = {
    "REVOCABLE_RESOURCES": "revocable",
    "GPU_RESOURCES": "gpus",
    "SHARED_RESOURCES": "shared",
    "RESERVATION_REFINEMENT": "refinement",
    "REGION_AWARE": "region",
}
_SAFE = "/-_."


def quoted(text: str) -> str:
    """Quote a text for use anywhere in a line."""
    return quote_from_bytes(text.encode("utf-8", "surrogateescape"), _SAFE)


def amounts(words: Amounts) -> str:
    """Write amounts by name."""
    return ";".join(
        f"{quoted(name)}:{format_amount(thousandths(each))}" for name, each in words.items()
    )


def framework(framework_id: str, info: Info) -> str:
    """Arguments of a framework's registration."""
    capabilities = [_CAPABILITIES[each] for each in info.capabilities]
    roles = info.roles[:1] or ("*",) if info.old else info.roles
    words = [
        framework_id,
        f"name={quoted(info.name)}",
        f"user={quoted(info.user)}",
        f"principal={quoted(info.principal)}",
        f"roles={_listed(roles)}",
        f"suppressed={_listed(info.suppressed)}",
        f"capabilities={','.join(capabilities)}",
        f"old={int(info.old)}",
        *(f"label.{quoted(key)}={quoted(value)}" for key, value in info.labels),
        *(
            f"minimum.{quoted(role)}={'|'.join(map(amounts, any_of))}"
            for role, any_of in info.minimum.items()
        ),
    ]
    return " ".join(words)


def agent(agent_id: str, words: AgentWords) -> str:
    """Arguments of an agent's registration."""
    reserved = {f"cpus({quoted(role)})": each for role, each in words.reserved.items()}
    total = [
        *filter(None, [amounts(words.resources)]),
        *_raw(reserved),
        *(f"{quoted(name)}:[{_ranges(spans)}]" for name, spans in words.ranges.items()),
        *(f"{quoted(name)}:{{{_listed(items)}}}" for name, items in words.sets.items()),
        # The type and identity of an object, opaque to the brain.
        *(f"disk[{each.source.lower()}:{quoted(f'{each.which}:{each.profile}')}]:1"
          for each in words.disks),
    ]  # fmt: skip
    attributes = ",".join(f"{quoted(name)}:{quoted(value)}" for name, value in words.attributes)
    parts = [
        agent_id,
        f"host={quoted(words.hostname)}",
        f"region={quoted(words.region)}",
        f"zone={quoted(words.zone)}",
        f"attributes={attributes}",
        f"total={';'.join(total)}",
    ]
    return " ".join(parts)


def call(framework_id: str, said: Request | Suppress | Revive) -> str:
    """A scheduler call, as a line."""
    match said:
        case Request():
            return " ".join(["request", framework_id, *map(amounts, said.needs)])
        case Suppress():
            return f"suppress {framework_id} roles={_listed(said.roles)}"
        case Revive():
            return f"revive {framework_id} roles={_listed(said.roles)}"


def exclude(framework_id: str, places: Iterable[tuple[str, str]], *, excluded: bool) -> str:
    """A line by which offer constraints exclude roles from agents, or no longer do."""
    way = "on" if excluded else "off"
    rows = (f"{quoted(role)} {agent_id} {way}" for role, agent_id in places)
    return " ".join(["exclude", framework_id, *rows])


def _ranges(spans: Spans) -> str:
    return ",".join(f"{first}-{last}" for first, last in spans)


def _listed(names: Iterable[str]) -> str:
    return ",".join(map(quoted, names))


def _raw(by_piece: Mapping[str, float]) -> list[str]:
    return [f"{piece}:{format_amount(thousandths(each))}" for piece, each in by_piece.items()]
