"""Finds what bars a client from an agent: constraints, capabilities, quotas, filters, reservations.

`exclusions` lists each constraint and capability that bars a client. `PairChecker` uses the loops'
own test to find which of all rules bar pairs of a client and an agent.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from allocator.core import (
    CONSTRAINT_LABEL,
    UNBOUNDED,
    BitTable,
    Bools,
    Clause,
    Ints,
    Rule,
    Settings,
    SharedBits,
    Snapshot,
    SortedRule,
    harmless,
    no_bits,
    parse_constraint,
    shared_pairs,
    shared_width,
    without_collected,
)
from allocator.explain.picture import Picture, Subject
from allocator.policies.filling import servable_pairs
from allocator.policies.filling.criterion import Criterion, cluster_total, of_amounts
from allocator.policies.filling.policy import stages_of
from allocator.policies.filling.scene.loop_arrays import Places, Scene
from allocator.policies.filling.scene.scene_builder import own, read_only, scene_of
from allocator.policies.filling.scene.scoring import OVERDUE

_CLAUSE_MAX = 200
"""Maximum number of characters of a clause in a message; frameworks may state longer ones."""

_CAPABILITIES = {
    "gpus": (
        "the framework lacks GPU_RESOURCES, and the agent has GPUs",
        "add the capability GPU_RESOURCES to the framework",
    ),
    "any_region": (
        "the framework lacks REGION_AWARE, and the agent is outside the master's region",
        "add the capability REGION_AWARE to the framework",
    ),
    "many_roles": (
        "the agent lacks MULTI_ROLE, and the framework may have several roles",
        "upgrade the agent to Mesos 1.3 or later",
    ),
    "nested_role": (
        "the agent lacks HIERARCHICAL_ROLE, and the role is below another",
        "upgrade the agent to Mesos 1.4 or later",
    ),
}
"""For each part of a rule except its clauses: the cause to report, and the remedy."""


@dataclass(frozen=True)
class Exclusion:
    """One condition, and the agents from which it bars a client.

    `reason`: ``constraint`` or ``capability``.
    `where` (A,): agents, by handle.
    """

    reason: str
    cause: str
    mend: str
    where: Bools


def exclusions(picture: Picture, subject: Subject) -> Iterator[Exclusion]:
    """Yield each condition that bars the client from some agent."""
    bound, columns = picture.agents.bound, picture.columns
    told = subject.told & bound
    if told.any():
        cause = "the framework's own offer constraints, as the master evaluates them"
        yield Exclusion("constraint", cause, "change the framework's offer constraints", told)
    rule, barred = subject.rule, subject.excluded & bound
    # An empty rule, to which one condition at a time is added.
    anything = Rule()
    for part, (cause, mend) in _CAPABILITIES.items():
        where = columns.barred_by(SortedRule.of(replace(anything, **{part: getattr(rule, part)})))
        if where is not None and (where := where & barred).any():
            yield Exclusion("capability", cause, mend, where)
    source = _sources(picture, subject.client)
    for clause in dict.fromkeys(rule.clauses):
        where = columns.barred_by(SortedRule.of(replace(anything, clauses=(clause,))))
        if where is not None and (where := where & barred).any():
            text = harmless(text_of(clause), _CLAUSE_MAX)
            cause, mend = source.get(clause, _OWN)
            yield Exclusion("constraint", f"{text}, {cause}", mend, where)


_OWN = (
    f"of the framework's label {CONSTRAINT_LABEL}",
    f"change the label {CONSTRAINT_LABEL} of the framework",
)


def _sources(picture: Picture, client: int) -> dict[Clause, tuple[str, str]]:
    """Map clauses of operators' rules to their cause, and to the command that removes the rule."""
    names, found = picture.names, dict[Clause, tuple[str, str]]()
    info = names.info[int(names.framework[client])]
    path = names.path[int(names.role[client])]
    for rule in picture.constraints:
        # Use the look-up of the books, with this rule alone.
        key = (rule.role, rule.framework_name)
        alone = Settings(constraints={key: rule})
        for expression in alone.constraint_rules(path, info.name if info else ""):
            options = f" --role {rule.role!r}" * bool(rule.role)
            options += f" --framework-name {rule.framework_name!r}" * bool(rule.framework_name)
            whom = f"for{options.replace('--', '')}" if options else "for all frameworks"
            cause = f"an operator's rule {whom} ({rule.expression!r})"
            for clause in parse_constraint(expression):
                found.setdefault(clause, (cause, f"mesos-allocator constraint remove{options}"))
    return found


def text_of(clause: Clause) -> str:
    """Format a clause in operators' syntax.

    >>> [text_of(clause) for clause in parse_constraint("zone=b|a; !ssd")]
    ['zone=a|b', '!ssd']
    """
    if not clause.values:
        return "!" * clause.negated + clause.attribute
    return f"{clause.attribute}{'!' * clause.negated}={'|'.join(sorted(clause.values))}"


@dataclass(frozen=True)
class Pairs:
    """Clients (n,) (rows; each must have a leaf) and agents (n,) (rows of the snapshot)."""

    client: Ints
    agent: Ints


@dataclass(frozen=True)
class Barring:
    """What bars pairs, (n,) each; several rules may bar one pair.

    `open`: nothing; the agent could serve the client now.
    `excluded`: constraints or capabilities.
    `no_room`: the free resources that the client may use there make no task or no offer.
    `reserved`: as `no_room`, but with those that only others may use they would make an offer.
    `minimum`: tasks fit there, but not enough of them for an offer.
    `filtered`: a filter covers what could be offered.
    """

    open: Bools
    excluded: Bools
    no_room: Bools
    reserved: Bools
    minimum: Bools
    filtered: Bools
    bounded: Bools


class PairChecker:
    """Tests with the loops' own code whether agents can serve clients, and if not, why.

    `scored`: whether the scene's scores are those of a policy.
    """

    def __init__(self, snapshot: Snapshot, criteria: list[Criterion] | None = None) -> None:
        """Build the scene; `criteria` only affect scores, and may be left out."""
        self.snapshot = snapshot
        self.scored = bool(criteria)
        # No rule depends on the criterion, so any one will do.
        usual = [of_amounts(snapshot, cluster_total(snapshot))]
        self.scene = scene_of(snapshot, criteria or usual)
        # The stage of overdue clients follows the same rules as the usual one.
        self._stages = [stage for stage in stages_of(snapshot) if stage != OVERDUE]
        # Scenes with lifted rules, which have a bit per client and agent, are built only once.
        self._found: dict[tuple[bool, bool, bool], Scene] = {}
        self._none: dict[int, BitTable] = {}
        self._unbarred = self._lifted(minimum=False)
        self._enough = self._lifted()

    @cached_property
    def beside_gangs(self) -> "PairChecker":
        """A checker that treats resources collected for gangs as held, so not free for others."""
        return PairChecker(without_collected(self.snapshot))

    def barring(self, pairs: Pairs) -> Barring:
        snapshot = self.snapshot
        is_open = self._passes(self.scene, pairs)
        excluded = shared_pairs(snapshot.excluded, pairs.agent, pairs.client)
        room = self._passes(self._unbarred, pairs)
        everything = np.full_like(self.scene.kinds.reach, ~np.uint64(0))
        kinds = self.scene.kinds._replace(reach=read_only(everything, np.uint64))
        reserved = ~room & self._passes(self._unbarred._replace(kinds=kinds), pairs)
        enough = room & self._passes(self._enough, pairs)
        filtered = enough & ~self._passes(self._lifted(filters=True), pairs)
        bounded = enough & ~self._passes(self._lifted(bounds=True), pairs)
        # A filter may cover what quotas leave, although neither of them bars the pair alone.
        filtered |= ~(is_open | excluded | ~enough | filtered | bounded)
        return Barring(is_open, excluded, ~room, reserved, room & ~enough, filtered, bounded)

    def short_of(self, pairs: Pairs, capacity: Ints | None = None) -> Bools:
        """Resources with too little free for a task, (n, R); `capacity`: as for `bounded_by`."""
        places, columns = self.scene.places, len(self.snapshot.total)
        short = np.zeros((len(pairs.client), columns), np.bool_)
        for column in range(columns):
            only = np.zeros_like(places.demand)
            only[:, column] = places.demand[:, column]
            wanted: Bools = (only[:, column] > 0)[places.of_client[pairs.client]]
            if wanted.any():
                alone = places._replace(demand=read_only(only, np.int64))
                scene = self._unbarred._replace(places=alone)
                if capacity is not None:
                    scene = self._emptied(scene, capacity)
                fits = self._passes(scene, pairs)
                short[:, column] = wanted & ~fits
        return short

    def bounded_by(self, pairs: Pairs, bound: int | None, capacity: Ints | None = None) -> Bools:
        """Return whether a single bound bars pairs, (n,).

        `bound`: row of the bound; None: test what must stay free for guarantees instead.
        `capacity` (m, R), in thousandths: test m empty agents with these capacities instead of the
        snapshot's agents; the pairs then refer to rows of this array.
        """
        bounds = self.scene.bounds
        left = np.full_like(bounds.left, UNBOUNDED)
        required = bounds.required
        if bound is not None:
            left[bound] = bounds.left[bound]
            required = np.zeros_like(required)
        alone = bounds._replace(left=left, required=own(required, np.int64))
        scene, room = self._lifted(bounds=True)._replace(bounds=alone), self._enough
        if capacity is not None:
            scene, room = self._emptied(scene, capacity), self._emptied(room, capacity)
        return self._passes(room, pairs) & ~self._passes(scene, pairs)

    def fits_when_empty(self, pairs: Pairs, capacity: Ints) -> Bools:
        return self._passes(self._emptied(self._unbarred, capacity), pairs)

    def _passes(self, scene: Scene, pairs: Pairs) -> Bools:
        place = scene.places.of_client[pairs.client]
        passes = np.zeros(len(place), np.bool_)
        for stage in self._stages:
            staged = scene._replace(rule=scene.rule._replace(stage=stage))
            passes |= servable_pairs.can_serve(staged, place, pairs.agent)
        return passes

    def _lifted(
        self, *, filters: bool = False, bounds: bool = False, minimum: bool = True
    ) -> Scene:
        """The scene with only the given rules; `minimum`: of clients served in whole tasks."""
        rules = filters, bounds, minimum
        if rules not in self._found:
            self._found[rules] = self._lift(filters=filters, bounds=bounds, minimum=minimum)
        return self._found[rules]

    def _lift(self, *, filters: bool, bounds: bool, minimum: bool) -> Scene:
        agents, shown = self.scene.agents, self.snapshot.filters
        none = self._none_barred(agents.barred.shape[1])
        head = shown.head if filters else np.full_like(shown.head, -1)
        rule = self.scene.rule
        places = self.scene.places if minimum else _without_minimum(self.scene.places)
        return self.scene._replace(
            places=places,
            agents=agents._replace(
                excluded=self._none_excluded(len(agents.start) - 1),
                covered=read_only(shown.covered if filters else none, np.uint64),
                barred=none,
                head=read_only(head, np.int32),
            ),
            rule=rule._replace(bounded=rule.bounded and bounds),
        )

    def _none_barred(self, count: int) -> BitTable:
        if count not in self._none:
            blocks, _, words = self.scene.agents.barred.shape
            self._none[count] = np.zeros((blocks, count, words), np.uint64)
        return self._none[count]

    def _none_excluded(self, count: int) -> SharedBits:
        return no_bits(count, 64 * shared_width(self.snapshot.excluded))

    def _emptied(self, scene: Scene, capacity: Ints) -> Scene:
        """Replace the scene's agents by empty ones with only plain resources."""
        count, agents = len(capacity), scene.agents
        none = self._none_barred(count)
        return scene._replace(
            agents=agents._replace(
                free=own(capacity, np.int64),
                excluded=self._none_excluded(count),
                covered=read_only(none, np.uint64),
                barred=none,
                stands=none,
                barring=read_only(np.zeros(count), np.bool_),
                head=read_only(np.full(count, -1), np.int32),
                start=read_only(np.zeros(count + 1), np.int64),
                largest=read_only(np.zeros((len(agents.largest), count)), np.int64),
            )
        )


def with_smallest_tasks(snapshot: Snapshot) -> Snapshot:
    """For clients whose gangs have unlike tasks, replace the demand by what each of these needs.

    Where this does not fit, none of the tasks does.
    """
    unlike = {} if snapshot.gangs is None else snapshot.gangs.unlike
    if not unlike:
        return snapshot
    demand = snapshot.demand.copy()
    for client, lines in unlike.items():
        least = lines.size.min(axis=0)
        demand[client] = least if least.any() else demand[client]
    return replace(snapshot, demand=read_only(demand, np.int64))


def _without_minimum(places: Places) -> Places:
    """Accept any single task as an offer."""
    end_row = np.where(places.known, places.least_row, places.end_row)
    return places._replace(
        opening=read_only(np.ones_like(places.opening), np.int64),
        end_row=read_only(end_row, np.int64),
    )
