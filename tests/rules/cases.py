"""Mesos's rules as cases in text: parsing and formatting. `README.md` describes the format.

`small_master.py` implements the meaning of each line.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from allocator.core import Kind, format_amount, parse_amount
from laboratory.resources import Reservation, Resource, kind_of

ALL = "all"
NOTHING = "nothing"
OFFERING = ("OFFERED", "PARTIAL")
FORMS = ("path", "mount", "block", "raw")

Wish = dict[Kind, int]
"""Thousandths by kind."""


@dataclass
class Case:
    """A state, a wish, and the verdict on it.

    comments: comment lines above it, with their signs.
    state: lines, split into words.
    wish: framework, role, agent; then amounts, or ``all``.
    verdict: a reason, followed by the offer if there is one. Empty: not known yet.
    core: the sidecar's offer, if it differs from the verdict.
    """

    title: str
    comments: list[str] = field(default_factory=list)
    state: list[list[str]] = field(default_factory=list)
    wish: list[str] = field(default_factory=list)
    verdict: list[str] = field(default_factory=list)
    core: list[str] | None = None

    @property
    def wants_all(self) -> bool:
        """Whether the wish is for all free resources of the agent."""
        return self.wish[3:] == [ALL]

    @property
    def offered(self) -> Wish:
        """The offer according to the verdict."""
        return amounts_of(self.verdict[1:])

    @property
    def decided(self) -> Wish:
        """The offer that the sidecar should make."""
        return self.offered if self.core is None else amounts_of(self.core)

    def text(self) -> str:
        """Format it."""
        lines = [*self.comments, f"case {self.title}", *(" ".join(line) for line in self.state)]
        lines.append(" ".join(["wish", *self.wish]))
        if self.verdict:
            lines.append(" ".join(["verdict", *self.verdict]))
        if self.core is not None:
            lines.append(" ".join(["core", *self.core]))
        return "".join(f"{line}\n" for line in lines)


def read_cases(text: str) -> list[Case]:
    """Read a file; ValueError for a misplaced line."""
    cases: list[Case] = []
    comments: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words:
            continue
        if words[0].startswith("#"):
            comments.append(line)
        elif words[0] == "case":
            cases.append(Case(line.removeprefix("case "), comments))
            comments = []
        elif not cases or comments:
            raise ValueError(f"line {number}: {line!r} stands outside of a case")
        elif words[0] == "wish":
            cases[-1].wish = words[1:]
        elif words[0] == "verdict":
            cases[-1].verdict = words[1:]
        elif words[0] == "core":
            cases[-1].core = words[1:]
        else:
            cases[-1].state.append(words)
    return cases


def write_cases(cases: Iterable[Case]) -> str:
    """Write a file."""
    return "\n".join(case.text() for case in cases)


def object_of(word: str) -> tuple[Resource, int]:
    """Parse an object: ``name:amount``, each ``@role`` it is reserved to, each ``+property``."""
    first, *properties = word.split("+")
    named, *roles = first.split("@")
    name, _, amount = named.partition(":")
    values = dict(each.partition("=")[::2] for each in properties)
    label = (("label", values.pop("label")),) if "label" in values else ()
    reservations = [Reservation(role) for role in roles]
    if reservations:
        reservations[-1] = Reservation(roles[-1], static="static" in values, labels=label)
    source = next((form for form in FORMS if form in values), "")
    resource = Resource(
        name,
        scalar="ranges" not in values,
        reservations=tuple(reservations),
        revocable="revocable" in values,
        shared="shared" in values,
        provider=values.get("provider", ""),
        source=source,
        source_id=values.get(source, ""),
        persistence=values.get("volume", "") or "volume" * ("volume" in values),
    )
    unknown = set(values) - {*FORMS, "static", "ranges", "revocable", "shared", "provider"}
    if unknown - {"volume"}:
        raise ValueError(f"{word!r}: {', '.join(sorted(unknown))} is no property of an object")
    return resource, parse_amount(amount)


def objects_of(words: Iterable[str]) -> dict[Resource, int]:
    """Parse objects; equal ones add up."""
    objects: dict[Resource, int] = {}
    for resource, amount in map(object_of, words):
        objects[resource] = objects.get(resource, 0) + amount
    return objects


def quantities_of(words: Iterable[str]) -> dict[str, int]:
    """Parse amounts by name."""
    pairs = (word.partition(":") for word in words)
    return {name: parse_amount(amount) for name, _, amount in pairs}


def amounts_of(words: Iterable[str]) -> Wish:
    """Parse amounts by kind; properties of objects that do not distinguish kinds are dropped."""
    amounts: Wish = {}
    for word in words:
        if word != NOTHING:
            resource, amount = object_of(word)
            amounts[kind_of(resource)] = amounts.get(kind_of(resource), 0) + amount
    return amounts


def words_of(amounts: Wish) -> list[str]:
    """Format amounts by kind; a stack of reservations as its last role, repeated."""
    words = []
    for kind, amount in sorted(amounts.items(), key=lambda each: str(each[0])):
        word = f"{kind.name}:{format_amount(amount)}"
        word += f"@{kind.reserved_role}" * kind.depth
        word += "+ranges" * (not kind.scalar) + "+revocable" * kind.revocable
        form = f"+{kind.form}" if kind.form else ""
        # A raw or block disk with an id is indivisible; without an id it is plain space.
        form += "=any" * (kind.form in {"raw", "block"} and kind.indivisible)
        words.append(word + form + "+shared" * kind.shared)
    return words or [NOTHING]
