"""Input of frameworks is untrusted: invalid input harms only its sender, and costs little."""

import pytest

from allocator.core import (
    AMOUNT_MAX,
    CONSTRAINT_LABEL,
    DEMAND_LABEL,
    AddAgent,
    AddFramework,
    AgentInfo,
    Define,
    FrameworkInfo,
    Kind,
    PolicySpec,
    Request,
    SessionLimits,
    SetAside,
    UpdateAgent,
    UpdateAllocation,
    UpdateFramework,
    parse_amount,
    parse_quantities,
)
from allocator.core.books.resource_space import NOWHERE
from allocator.core.bounds import (
    ALTERNATIVES_MAX,
    CAPACITY_MAX,
    CLAUSE_VALUES_MAX,
    CLAUSES_MAX,
    DEMAND_NAMES_MAX,
    ROLES_OF_FRAMEWORK_MAX,
    ROW_TEXT_MAX,
    ROWS_MAX,
)
from tests.core.session import Session

TASKS = PolicySpec("drf", mode="characterised")
CLAUSES = ";".join(f"zone!=z{n}" for n in range(CLAUSES_MAX + 1))
VALUES = "zone=" + "|".join(f"z{n}" for n in range(CLAUSE_VALUES_MAX + 1))
NAMES = ";".join(f"name-{n}:1" for n in range(DEMAND_NAMES_MAX + 1))


def begun(**more) -> Session:
    session = Session(TASKS, **more)
    session.agent(1, 4, 8)
    return session


def rows(session: Session, framework: int = 1) -> list[tuple[str, str]]:
    found = session.state.frameworks.aside.get(framework, ())
    return [(row.field, row.reason) for row in found]


AMOUNTS = [
    "9e999999",
    "1e-999999",
    "1e9999",
    "9" * 100_000,
    "NaN",
    "sNaN",
    "Infinity",
    "1_000",
    "\N{ARABIC-INDIC DIGIT ONE}",
    "\N{FULLWIDTH DIGIT ONE}",
    "0x10",
    "-1",
    "1e",
    ".",
    "",
    "\0",
]


@pytest.mark.parametrize("text", AMOUNTS, ids=range(len(AMOUNTS)))
def test_an_invalid_amount_is_a_value_error_of_one_line(text):
    with pytest.raises(ValueError, match=r"number|out of range") as caught:
        parse_quantities(f"cpus:{text}")
    assert type(caught.value) is ValueError
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("1", 1000),
        (" 1.5 ", 1500),
        (".5", 500),
        ("5.", 5000),
        ("1e3", 10**6),
        ("1E-3", 1),
        ("1e-9999", 0),
        ("+2", 2000),
        ("0", 0),
        (f"{2**53 // 1000}", 2**53 // 1000 * 1000),
    ],
)
def test_amounts_as_people_write_them(text, amount):
    assert parse_amount(text) == amount


@pytest.mark.parametrize(
    ("text", "mib"),
    [
        ("mem:4Gi", 4096),  # 4 x 2^30 / 2^20
        ("mem:512Mi", 512),
        ("mem(*): 1.5 GiB", 1536),
        ("disk:2Ti", 2 * 2**20),
        ("mem:4GB", 3814.697),  # 4 x 10^9 / 2^20 = 3814.69726...
        ("mem:1e3M", 953.674),
        ("mem:1kB", 0.001),  # 1000 / 2^20 = 0.00095...
        ("disk:1T", 953674.316),
        ("disk:8Pi", 2**33),
    ],
)
def test_amounts_of_memory_and_disk_may_have_a_suffix(text, mib):
    assert list(parse_quantities(text).values()) == [round(1000 * mib)]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("cpus:2G", "only mem and disk take a suffix"),
        ("gpus:1Ki", "only mem and disk take a suffix"),
        ("cpus:500m", "only mem and disk take a suffix"),
        ("mem:4g", "'4g' is not a number of MiB; a suffix is one of K, M, G"),
        ("mem:4Gib", "a suffix is one of"),
        ("mem:4GBB", "a suffix is one of"),
        ("mem:G", "is not a number of MiB"),
        ("mem:-4Gi", "out of range; it must be from 0 to 9007199254740 MiB"),
        ("disk:8388608Pi", "out of range"),  # 2^53 MiB
    ],
)
def test_a_suffix_that_means_nothing_is_refused(text, says):
    with pytest.raises(ValueError, match=says):
        parse_quantities(text)


def test_the_label_of_a_framework_may_have_a_suffix():
    session = begun()
    session.framework(1, labels={DEMAND_LABEL: "cpus:1;mem:4Mi"})
    assert rows(session) == []
    # Two tasks of 4 MiB fit on the agent of 4 CPUs and 8 MiB.
    assert session.cycle(1000) == [(1, 1, 1, {"cpus": 2, "mem": 8})]


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ({DEMAND_LABEL: "cpus:9e999999"}, "unreadable"),
        ({DEMAND_LABEL: "two cpus"}, "unreadable"),
        ({DEMAND_LABEL: "cpus:1" + " " * 5000}, "too_long"),
        ({DEMAND_LABEL: NAMES}, "too_many"),
        ({CONSTRAINT_LABEL: "=;"}, "unreadable"),
        ({CONSTRAINT_LABEL: CLAUSES}, "too_many"),
        ({CONSTRAINT_LABEL: VALUES}, "too_many"),
    ],
)
def test_a_label_that_is_not_taken_is_as_if_it_had_not_been_said(labels, reason):
    session = begun()
    session.framework(1, labels=labels)
    assert rows(session) == [("labels", reason)]
    assert session.cycle(1000) == [(1, 1, 1, {"cpus": 4, "mem": 8})]
    # A later valid value takes effect.
    session.allocator.step(UpdateFramework(1, FrameworkInfo("x"), (1,)))
    assert rows(session) == []


def test_many_clauses_are_taken_up_to_the_bound():
    session = begun()
    session.agent(2, 4, 8, zone="z7")
    session.framework(1, labels={CONSTRAINT_LABEL: CLAUSES.rpartition(";")[0]})
    assert rows(session) == []
    assert [offer[2] for offer in session.cycle(1000)] == [1]
    session.allocator.check()


def test_resources_that_no_agent_has_share_one_column_and_fit_nowhere():
    session = begun()
    columns = len(session.state.space.names)
    for framework in range(1, 20):
        names = ";".join(f"invented-{framework}-{n}:1" for n in range(50))
        session.framework(framework, labels={DEMAND_LABEL: names})
    known = FrameworkInfo("f20", minimum={1: ({"invented": 1},)})
    session.allocator.step(AddFramework(20, known, (1,)))
    session.framework(21)
    session.allocator.step(Request(21, ({"wished-for": 5, "cpus": 1},)))
    assert session.state.space.names[columns:] == [NOWHERE]
    assert session.cycle(1000) == []
    assert rows(session) == [("labels", "unknown")]
    assert rows(session, 20) == [("offer_filters", "unknown")]
    assert rows(session, 21) == [("request", "unknown")]


def test_an_unknown_resource_fits_once_an_agent_has_it():
    session = begun()
    session.framework(1, labels={DEMAND_LABEL: "gpus:1;cpus:1"}, capabilities=["GPU_RESOURCES"])
    known = FrameworkInfo("f2", minimum={1: ({"gpus": 1000}, {"invented": 1})})
    session.allocator.step(AddFramework(2, known, (1,)))
    assert session.cycle(1000) == []
    session.allocator.step(Define(kinds={2: Kind("gpus")}))
    assert rows(session) == []
    assert rows(session, 2) == [("offer_filters", "unknown")]
    clients = session.state.clients
    demand = session.state.space.named(clients.demand[clients.row(1, 1)])
    assert demand == {"gpus": 1000, "cpus": 1000}
    assert list(clients.unfit) == [clients.row(2, 1)]


def test_the_number_of_alternative_minimums_is_limited():
    session = begun()
    many = (*({"cpus": 9000 + n} for n in range(ALTERNATIVES_MAX)), {"cpus": 1})
    session.allocator.step(AddFramework(1, FrameworkInfo("f1", minimum={1: many}), (1,)))
    assert rows(session) == [("offer_filters", "too_many")]
    assert session.cycle(1000) == []
    wide = {f"name-{n}": 1 for n in range(DEMAND_NAMES_MAX + 1)}
    session.allocator.step(AddFramework(2, FrameworkInfo("f2", minimum={1: (wide,)}), (1,)))
    assert session.cycle(2000) == [(2, 1, 1, {"cpus": 4, "mem": 8})]


def test_a_request_of_too_much_is_passed_over():
    session = begun()
    session.framework(1)
    wide = {f"name-{n}": 1 for n in range(DEMAND_NAMES_MAX + 1)}
    session.allocator.step(Request(1, (wide, {"cpus": 2000})))
    assert rows(session) == [("request", "too_many")]
    assert session.cycle(1000) == [(1, 1, 1, {"cpus": 4})]
    session.allocator.step(Request(1, ()))
    assert rows(session) == []


def test_rows_are_few_short_and_harmless():
    session = begun()
    told = tuple(
        SetAside("labels\n", "unreadable", f"{n}\x1b[31m\u202e" + "x" * 999) for n in range(99)
    )
    session.allocator.step(AddFramework(1, FrameworkInfo("x", set_aside=told), (1,)))
    found = session.state.frameworks.aside[1]
    assert len(found) == ROWS_MAX
    assert all(len(row.text) <= ROW_TEXT_MAX and row.text.isprintable() for row in found)
    assert found[0].field == "labels?"


def test_an_error_at_a_frameworks_words_leaves_the_books_as_they_were(monkeypatch):
    session = begun()
    session.framework(1, 1, 2)
    (offer,) = session.cycle(1000)
    session.give_back(offer)

    def fails(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("allocator.core.apply.clients.declared_demand", fails)
    events = (
        UpdateFramework(1, FrameworkInfo("y"), (2,)),
        AddFramework(2, FrameworkInfo("z"), (1,)),
        Request(1, ({"cpus": 1},)),
    )
    for event in events:
        with pytest.raises(ZeroDivisionError):
            session.allocator.step(event)
    monkeypatch.undo()
    assert not session.state.frameworks.is_bound(2)
    before = session.state.frameworks.info[1]
    assert before
    assert before.framework_id != "y"
    assert not session.state.frameworks.request
    session.allocator.check()
    assert len(session.cycle(2000)) == 1


def test_roles_beyond_the_bounds_are_not_served_and_all_others_are():
    session = Session(TASKS, limits=SessionLimits(roles=3))
    session.agent(1, 4, 8)
    session.allocator.step(Define(roles={3: "c", 4: "d", 5: "d/e"}))
    session.allocator.step(AddFramework(1, FrameworkInfo("x"), (4, 2, 5), (5,)))
    assert [offer[:2] for offer in session.cycle(1000)] == [(1, 2)]
    assert rows(session) == [("roles", "too_many")]
    session.allocator.check()


class CountedRole(int):
    """A role's handle that counts comparisons."""

    compared = 0

    __hash__ = int.__hash__

    def __eq__(self, other: object) -> bool:
        CountedRole.compared += 1
        return int(self) == other


def test_the_number_of_roles_of_a_framework_is_limited_and_they_are_not_compared():
    count = ROLES_OF_FRAMEWORK_MAX + 10
    paths: dict[int, str] = {CountedRole(role): f"role-{role}" for role in range(1, count + 1)}
    session = Session(TASKS, roles={})
    session.allocator.step(Define(roles=paths))
    # Distinct objects from the keys: identical objects are equal without a comparison.
    roles = tuple(map(CountedRole, range(1, count + 1)))
    again = tuple(map(CountedRole, range(1, count + 1)))
    info = FrameworkInfo("x", labels={DEMAND_LABEL: "cpus:1"})
    session.allocator.step(AddFramework(1, info, roles, again))
    CountedRole.compared = 0
    session.allocator.step(UpdateFramework(1, info, again, roles))
    assert CountedRole.compared < 20 * count
    assert len(session.state.clients) == ROLES_OF_FRAMEWORK_MAX
    assert rows(session) == [("roles", "too_many")]


def test_sums_over_agents_that_say_to_have_more_than_there_is_stay_in_range():
    session = Session(TASKS)
    session.framework(1)
    count = 1500
    for agent in range(1, count + 1):
        info = AgentInfo(f"a{agent}")
        session.allocator.step(AddAgent(agent, info, {0: AMOUNT_MAX, 1: 1000}))
    total = session.state.total_by_column()
    assert total.tolist() == [count * CAPACITY_MAX, count * 1000]
    assert [row.reason for row in session.state.agents.aside[1]] == ["too_many"]
    assert len(session.allocator.allocate(1000)) == count
    assert (session.state.held_by_column() >= 0).all()
    session.allocator.check()
    # The operator reserves part of an unknown amount.
    session.allocator.step(Define(kinds={2: Kind("cpus", reserved_role="a", depth=1)}))
    part = {0: 2**50}, {2: 2**50}
    session.allocator.step(AddAgent(2000, AgentInfo("b"), {0: AMOUNT_MAX}))
    session.allocator.step(UpdateAllocation(0, 0, 2000, *part))
    assert session.state.agents.capacity[:, 2000].tolist()[:3] == [CAPACITY_MAX, 0, CAPACITY_MAX]
    session.allocator.step(UpdateAgent(1, capacity={1: 1000}, attributes={}))
    assert 1 not in session.state.agents.aside


def test_reservations_as_deep_as_permitted_are_counted_exactly():
    """Otherwise a reservation would count twice, and be granted without effect in each cycle."""
    session = Session(TASKS)
    session.allocator.step(Define(kinds={2: Kind("cpus", reserved_role="a", depth=1)}))
    most = CAPACITY_MAX - 1
    session.allocator.step(AddAgent(1, AgentInfo("a"), {0: most}))
    session.allocator.step(UpdateAllocation(0, 0, 1, {0: most - 1000}, {2: most - 1000}))
    assert session.state.agents.capacity[:, 1].tolist()[:3] == [1000, 0, most - 1000]
    assert 1 not in session.state.agents.aside
