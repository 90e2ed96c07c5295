"""The one interface between the core and whatever decides."""

from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from allocator.core.snapshot import Floats, Grants, Snapshot


@dataclass(frozen=True, slots=True)
class PolicySpec:
    """A policy by name, as configuration, the wire and the journal carry it.

    Attributes
    ----------
    name : str
        What the host's registry has it under.
    selection : str
        How the agent is chosen; empty for the policy's own default.
    mode : str
        ``oblivious``: all that is free is offered. ``characterised``: whole tasks, where the
        demand vector is known.
    flat : bool
        True: all clients compete directly. False: roles compete, then their frameworks.
    parameters : dict of str to str
        What else the policy takes; unknown keys are an error.
    subtrees : dict of str to str
        Below these roles (paths), whoever is next is decided by another policy of the registry.
    """

    name: str = "drf"
    selection: str = ""
    mode: str = "oblivious"
    flat: bool = False
    parameters: dict[str, str] = field(default_factory=dict)
    subtrees: dict[str, str] = field(default_factory=dict)


class Policy(Protocol):
    """Decides who is granted what: a pure function of the snapshot and the seed."""

    def allocate(self, snapshot: Snapshot, seed: int) -> Grants:
        """Decide one cycle.

        Parameters
        ----------
        snapshot : Snapshot
        seed : int
            Unsigned 64 bits; the only source of chance.

        Returns
        -------
        Grants
            At most what is free, to clients with a leaf, on candidate agents, where neither an
            exclusion nor a filter bars it; after it nothing more fits.
        """
        ...


@runtime_checkable
class ScoringPolicy(Policy, Protocol):
    """A policy that can say by what it ranks, for people to look at."""

    def scores(self, snapshot: Snapshot) -> Floats:
        """Score every client as it stands.

        Returns
        -------
        (C,) float64
            Comparable among siblings: the smallest comes first. nan where there is no such number.
        """
        ...
