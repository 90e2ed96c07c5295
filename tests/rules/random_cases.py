"""Random cases: any state of a small master, and a wish for all of an agent."""

from itertools import zip_longest
from typing import Any

from hypothesis import strategies as st

from allocator.core import format_amount
from laboratory.resources import Resource, in_quota, kind_of
from tests.rules.cases import ALL, Case, Wish, object_of, objects_of
from tests.rules.small_master import SmallMaster

ROLES = ("r", "r/s", "t")
NAMES = ("cpus", "mem", "disk")
OBJECTS = (
    "cpus:{}",
    "mem:{}",
    "disk:{}",
    "cpus:{}@r",
    "cpus:{}@r+label=x",
    "cpus:{}@r/s",
    "cpus:{}@t",
    "cpus:{}@r@r/s",
    "cpus:{}+revocable",
    "mem:{}+provider=p",
    "disk:{}+path=p",
    "disk:{}+mount=m",
    "disk:{}+mount=n",
    "disk:{}@r+volume=v",
    "disk:{}@t+volume=w+shared",
    "ports:{}+ranges",
    "gpus:{}",
)
CAN = (
    "GPU_RESOURCES",
    "REGION_AWARE",
    "RESERVATION_REFINEMENT",
    "REVOCABLE_RESOURCES",
    "SHARED_RESOURCES",
)

AGENT_WORDS = (
    "inactive",
    "region=there",
    "maintained",
    "old=MULTI_ROLE",
    "old=HIERARCHICAL_ROLE",
)

ELEMENTS = st.sampled_from([1000, 3000])
AMOUNTS = st.sampled_from([1000, 2000, 500, 3000, 7000])


@st.composite
def cases(draw: Any) -> Case:
    """A case without a verdict."""
    case = Case("A difference")
    agents = {f"a{n}": draw(some_objects()) for n in range(1, draw(st.integers(1, 2)) + 1)}
    frameworks = {
        f"f{n}": draw(st.lists(st.sampled_from(ROLES), min_size=1, max_size=2, unique=True))
        for n in range(1, draw(st.integers(1, 2)) + 1)
    }
    state = case.state
    for least in draw(st.lists(quantities(), max_size=2)):
        state.append(["minimum", *least])
    state += [[word] for word in ("gpus-for-all", "region here") if draw(st.booleans())]
    state += [["agent", name, *objects] for name, objects in agents.items()]
    state += [["framework", name, *roles] for name, roles in frameworks.items()]
    for name in agents:
        state += draw(properties("agent-is", name, AGENT_WORDS))
    for name, roles in frameworks.items():
        words = ("inactive", "old=MULTI_ROLE", *(f"suppressed={role}" for role in roles))
        state += draw(properties("framework-is", name, words))
        can = draw(st.lists(st.sampled_from(CAN), unique=True))
        state += [["framework-is", name, f"can={each}"] for each in can]
        if draw(few()):
            least = draw(quantities()) if draw(st.booleans()) else ["none"]
            state.append(["framework-minimum", name, draw(st.sampled_from(roles)), *least])
    state += draw(quotas())
    pairs = [(name, role) for name, roles in frameworks.items() for role in roles]
    for name, objects in agents.items():
        for object_ in objects:
            if draw(few()):
                line = "offered" if draw(st.booleans()) else "used"
                state.append([line, *draw(st.sampled_from(pairs)), name, draw(part_of(object_))])
        if draw(few()) and draw(few()):
            state.append(["excluded", *draw(st.sampled_from(pairs)), name])
        if objects and draw(few()):
            refused = draw(st.lists(st.sampled_from(objects), min_size=1, unique=True))
            life_ms = draw(st.sampled_from(["1000", "10"]))
            state.append(["refused", *draw(st.sampled_from(pairs)), name, life_ms, *refused])
    state += [["later", "11"]] * draw(few()) + [["paused"]] * (draw(few()) and draw(few()))
    case.state = [" ".join(line).split() for line in state]
    case.wish = [*draw(st.sampled_from(pairs)), draw(st.sampled_from(sorted(agents))), ALL]
    return case


def few() -> Any:
    """True occasionally, and false in a minimized case."""
    return st.integers(0, 3).map(lambda number: number == 3)


@st.composite
def some_objects(draw: Any) -> list[str]:
    """Distinct objects of an agent."""
    forms = draw(st.lists(st.sampled_from(OBJECTS), min_size=1, max_size=5, unique=True))
    amounts = [draw(ELEMENTS if "ranges" in form else AMOUNTS) for form in forms]
    return [form.format(format_amount(amount)) for form, amount in zip(forms, amounts, strict=True)]


@st.composite
def quantities(draw: Any) -> list[str]:
    """Amounts by name."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True))
    return [f"{name}:{format_amount(draw(AMOUNTS))}" for name in names]


@st.composite
def properties(draw: Any, line: str, name: str, words: tuple[str, ...]) -> list[list[str]]:
    """Lines with some of the properties."""
    return [[line, name, word] for word in words if draw(few()) and draw(few())]


@st.composite
def quotas(draw: Any) -> list[list[str]]:
    """Guarantees of top-level roles, limits of any; no guarantee exceeds its limit."""
    lines = []
    for role in ROLES:
        for name in NAMES:
            guarantee = draw(AMOUNTS) if "/" not in role and draw(few()) else 0
            if guarantee:
                lines.append(["guarantee", role, f"{name}:{format_amount(guarantee)}"])
            if draw(few()) and draw(st.booleans()):
                limit = guarantee + draw(st.sampled_from([0, 500, 2000]))
                lines.append(["limit", role, f"{name}:{format_amount(limit)}"])
    return lines


@st.composite
def part_of(draw: Any, word: str) -> str:
    """An object or part of it; more than its amount simulates an agent that shrank."""
    resource, amount = object_of(word)
    if resource.indivisible or resource.shared or not resource.scalar:
        return word
    taken = draw(st.sampled_from([amount, 500, amount + 1000]))
    return word.replace(f":{format_amount(amount)}", f":{format_amount(taken)}", 1)


def is_coarse(case: Case) -> bool:
    """Whether the sidecar, which sees kinds instead of objects, may offer less than the gates
    allow.

    A filter on one object covers all of its kind, and indivisible objects of a kind are offered
    together or not at all. If a filter covers one choice of objects within a quota, another choice
    may pass. While a guarantee is unmet, the overuse of an agent limits its other resources, too,
    but not in the gates.
    """
    objects = _objects(case)
    refused = any(line[0] == "refused" for line in case.state)
    several = len({kind_of(each) for each in objects}) < len(objects)
    whole = any(each.indivisible and in_quota(each) for each in objects)
    if not has_quotas(case):
        return refused and several
    return refused or whole or _is_short(case)


def has_quotas(case: Case) -> bool:
    """Whether the case has guarantees or limits."""
    return any(line[0] in {"guarantee", "limit"} for line in case.state)


def by_quota(case: Case, offered: Wish) -> dict[object, int]:
    """An offer in terms that the rules determine.

    Quotas bound the total of a name, and leave open which kinds make it up.
    """
    bounded = has_quotas(case)
    sums: dict[object, int] = {}
    for kind, amount in offered.items():
        key = kind.name if bounded and kind.bounded else kind
        sums[key] = sums.get(key, 0) + amount
    return sums


def _is_short(case: Case) -> bool:
    """Whether holdings on an agent exceed its capacity."""
    rows = SmallMaster(case).ledger.agents.values()
    return any(
        there < held
        for row in rows
        for there, held in zip_longest(row.capacity, row.held, fillvalue=0)
    )


def _objects(case: Case) -> list[Resource]:
    return [each for line in case.state if line[0] == "agent" for each in objects_of(line[2:])]
