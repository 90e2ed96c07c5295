"""A slow and obvious model of the books: dictionaries, one entry a holding.

It follows the same events as the core, and says afterwards what the core must hold, whom it may
serve, and whether something was left that it should have given.
"""

from dataclasses import dataclass, field

Vector = tuple[int, ...]


def plus(left: Vector, right: Vector) -> Vector:
    return tuple(a + b for a, b in zip(left, right, strict=True))


def minus(left: Vector, right: Vector) -> Vector:
    return tuple(a - b for a, b in zip(left, right, strict=True))


def covers(larger: Vector, smaller: Vector) -> bool:
    return all(a >= b for a, b in zip(larger, smaller, strict=True))


@dataclass
class Model:
    """What a careful clerk would write down."""

    kinds: int
    capacity: dict[int, Vector] = field(default_factory=dict)
    agent_active: dict[int, bool] = field(default_factory=dict)
    framework_active: dict[int, bool] = field(default_factory=dict)
    roles: dict[int, set[int]] = field(default_factory=dict)
    suppressed: set[tuple[int, int]] = field(default_factory=set)
    held: dict[tuple[int, int, int], Vector] = field(default_factory=dict)
    offered: dict[tuple[int, int, int], Vector] = field(default_factory=dict)
    excluded: set[tuple[int, int, int]] = field(default_factory=set)
    filters: list[tuple[tuple[int, int, int], Vector, int]] = field(default_factory=list)
    paused: bool = False

    @property
    def nothing(self) -> Vector:
        return (0,) * self.kinds

    def free(self, agent: int) -> Vector:
        left = self.capacity[agent]
        for (_, _, where), amount in self.held.items():
            if where == agent:
                left = minus(left, amount)
        return tuple(max(amount, 0) for amount in left)

    def offer(self, key: tuple[int, int, int], amount: Vector) -> None:
        self.held[key] = plus(self.held.get(key, self.nothing), amount)
        self.offered[key] = plus(self.offered.get(key, self.nothing), amount)

    def use(self, key: tuple[int, int, int], amount: Vector) -> None:
        left = self.offered.get(key, self.nothing)
        self._set(
            self.offered, key, tuple(max(a - b, 0) for a, b in zip(left, amount, strict=True))
        )

    def release(self, key: tuple[int, int, int], amount: Vector, *, used: bool) -> None:
        offered = self.offered.get(key, self.nothing)
        in_use = minus(self.held[key], offered)
        if used:
            back = tuple(max(a - b, 0) for a, b in zip(amount, in_use, strict=True))
        else:
            back = tuple(min(a, b) for a, b in zip(amount, offered, strict=True))
        self._set(self.offered, key, minus(offered, back))
        self._set(self.held, key, minus(self.held[key], amount))

    def _set(
        self, table: dict[tuple[int, int, int], Vector], key: tuple[int, int, int], to: Vector
    ) -> None:
        table.pop(key, None)
        if any(to):
            table[key] = to

    def drop(self, *, agent: int = 0, framework: int = 0, role: int = 0) -> None:
        """Forget whatever names this agent, or this framework (in this role)."""

        def gone(key: tuple[int, int, int]) -> bool:
            if agent:
                return key[2] == agent
            return key[0] == framework and role in (0, key[1])

        self.held = {key: v for key, v in self.held.items() if not gone(key)}
        self.offered = {key: v for key, v in self.offered.items() if not gone(key)}
        self.excluded = {key for key in self.excluded if not gone(key)}
        self.drop_filters(agent=agent, framework=framework, role=role)

    def drop_filters(self, *, agent: int = 0, framework: int = 0, role: int = 0) -> None:
        self.filters = [
            entry
            for entry in self.filters
            if not (
                entry[0][2] == agent
                if agent
                else entry[0][0] == framework and role in (0, entry[0][1])
            )
        ]

    def may_serve(self, key: tuple[int, int, int], amount: Vector, now_ms: int) -> bool:
        """Whether this may be offered at this moment, room aside."""
        framework, role, agent = key
        return (
            self.framework_active.get(framework, False)
            and role in self.roles[framework]
            and (framework, role) not in self.suppressed
            and self.agent_active.get(agent, False)
            and key not in self.excluded
            and not any(
                where == key and expires >= now_ms and covers(refused, amount)
                for where, refused, expires in self.filters
            )
        )
