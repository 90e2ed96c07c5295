"""The interface between the core and policies."""

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

from allocator.core.snapshot import Floats, Grants, Snapshot


@dataclass(frozen=True, slots=True)
class PolicySpec:
    """A policy by name, as configuration, the wire and the journal carry it.

    - `name`: its name in the host's registry.
    - `selection`: how the agent is chosen; empty: the policy's default.
    - `mode`: ``oblivious``: all that is free is offered. ``characterised``: whole tasks, if the
      demand vector is known.
    - `flat`: True: all clients compete directly. False: roles compete, then their frameworks.
    - `parameters`: other options of the policy; unknown keys are an error.
    - `subtrees`: below these roles (paths), another policy of the registry chooses the next client,
      see `Subtree`.
    """

    name: str = "drf"
    selection: str = ""
    mode: str = "oblivious"
    flat: bool = False
    parameters: dict[str, str] = field(default_factory=dict)
    subtrees: dict[str, str] = field(default_factory=dict)


class Subtree(NamedTuple):
    """The policy below a role.

    `name`: of the policy.
    `mode`: as of `PolicySpec`; empty: as above the role.
    """

    name: str
    mode: str
    parameters: dict[str, str]

    @staticmethod
    def read(text: str) -> "Subtree":
        """Read ``name`` or ``name:key=value,key=value``; the key ``mode`` is the mode.

        Raises ValueError if the form is invalid.

        Examples
        --------
        >>> Subtree.read("choosy:unit=tasks,mode=characterised")
        Subtree(name='choosy', mode='characterised', parameters={'unit': 'tasks'})
        """
        name, colon, rest = text.partition(":")
        parameters: dict[str, str] = {}
        for part in rest.split(",") if colon else ():
            key, equals, value = (each.strip() for each in part.partition("="))
            if not (key and equals and value) or key in parameters:
                message = f"{text!r} is not of the form 'name' or 'name:key=value,key=value'"
                raise ValueError(message)
            parameters[key] = value
        return Subtree(name.strip(), parameters.pop("mode", ""), parameters)


class Policy(Protocol):
    """Decides on grants: a pure function of the snapshot and the seed."""

    def allocate(self, snapshot: Snapshot, seed: int) -> Grants:
        """Decide one cycle.

        `seed`: unsigned 64 bits; the only source of chance.

        Returns grants of at most what is free, to clients with a leaf, on candidate agents, unless
        an exclusion or a filter bars them; afterwards nothing more fits.
        """
        ...


@runtime_checkable
class ScoringPolicy(Policy, Protocol):
    """A policy that can report its scores, for people to read."""

    def scores(self, snapshot: Snapshot) -> Floats:
        """Score every client.

        Returns (C,): comparable among siblings: the smallest comes first. nan if it has no score.
        """
        ...
