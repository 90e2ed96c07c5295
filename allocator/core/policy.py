"""The interface between the core and policies."""

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

from allocator.core.snapshot import Floats, Grants, Snapshot


@dataclass(frozen=True, slots=True)
class PolicySpec:
    """A policy by name, as in the configuration, the protocol and the journal.

    - `selection`: how the agent is chosen; empty: the policy's default.
    - `mode`: ``oblivious``: all that is free is offered. ``characterised``: whole tasks, if the
      client's demand is known.
    - `flat`: True: all clients compete directly. False: roles compete, then the clients in them.
    - `parameters`: other options of the policy; unknown keys are an error.
    - `subtrees`: by role (path): the policy among the clients below the role, see `Subtree`.
    """

    name: str = "drf"
    selection: str = ""
    mode: str = "oblivious"
    flat: bool = False
    parameters: dict[str, str] = field(default_factory=dict)
    subtrees: dict[str, str] = field(default_factory=dict)


class Subtree(NamedTuple):
    """The policy below a role; `mode`: as in `PolicySpec`; empty: the mode above the role."""

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

        `seed`: unsigned, 64 bits; the only source of randomness.

        Returns grants of at most what is free, to clients with a leaf, on candidate agents, and not
        where an exclusion or a filter bars them. Nothing more fits afterwards.
        """
        ...


@runtime_checkable
class ScoringPolicy(Policy, Protocol):
    """A policy that can report its scores, for display."""

    def scores(self, snapshot: Snapshot) -> Floats:
        """Score every client, (C,): comparable among siblings, smallest first; nan: no score."""
        ...
