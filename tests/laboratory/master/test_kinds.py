"""A master's resources on the wire: many objects as few kinds, and kinds back to objects."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator.core import Kind
from laboratory.resources import (
    FREE_OF_OWN,
    KINDS_USUAL,
    NAMED_EIGHTHS,
    OTHERS,
    SPARE,
    KindTable,
    Reservation,
    Resource,
    ResourceTable,
    disk,
    kind_of,
    reserved,
    volume,
    without_volume,
)

ROLES = ("a", "a/x", "b")


@st.composite
def resources(draw) -> Resource:
    roles = draw(st.sampled_from([(), ("a",), ("a", "a/x"), ("b",)]))
    labels = st.sampled_from([(), (("k", "1"),), (("k", "2"),)])
    return Resource(
        name=draw(st.sampled_from(["cpus", "mem", "disk", "gold", "tin"])),
        scalar=draw(st.booleans()),
        reservations=tuple(
            Reservation(role, principal=draw(st.sampled_from(["", "ops"])), labels=draw(labels))
            for role in roles
        ),
        revocable=draw(st.booleans()),
        shared=draw(st.booleans()),
        provider=draw(st.sampled_from(["", "p", "q"])),
        source=draw(st.sampled_from(["", "path", "mount", "block", "raw"])),
        source_id=draw(st.sampled_from(["", "1", "2"])),
        persistence=draw(st.sampled_from(["", "v", "w"])),
    )


def table_of(resources, kinds_max=0, names=()):
    """A master's table of these resources, for a sidecar that distinguishes `most` kinds."""
    table = ResourceTable(names)
    kinds = KindTable(table, len(names))
    kinds.begin(kinds_max)
    for resource in resources:
        kinds.handle(resource)
    return table, kinds


CPUS = Resource("cpus")
LABELLED = reserved(CPUS, "a", labels=(("k", "1"),))
MOUNT = disk("mount", "/mnt/1")

ALIKE = [
    (LABELLED, reserved(CPUS, "a", labels=(("k", "2"),))),
    (LABELLED, reserved(CPUS, "a", principal="ops")),
    (LABELLED, reserved(CPUS, "a", static=True)),
    (reserved(reserved(CPUS, "b"), "b/x"), reserved(reserved(CPUS, "b", principal="p"), "b/x")),
    (CPUS, Resource("cpus", provider="p")),
    (MOUNT, disk("mount", "/mnt/2")),
    (disk("block", "1"), Resource("disk", provider="p", source="block", source_id="2")),
    (volume(Resource("disk"), "v"), volume(MOUNT, "w")),
]
DIFFERENT = [
    (CPUS, Resource("mem")),
    (CPUS, Resource("cpus", scalar=False)),
    (CPUS, LABELLED),
    (LABELLED, reserved(CPUS, "b")),
    (LABELLED, reserved(LABELLED, "a/x")),
    (reserved(LABELLED, "a/x"), reserved(CPUS, "a/x")),
    (CPUS, Resource("cpus", revocable=True)),
    (volume(Resource("disk"), "v"), volume(Resource("disk"), "v", shared=True)),
    (Resource("disk"), disk("path", "/data")),
    (disk("path", "/data"), MOUNT),
    (MOUNT, volume(MOUNT, "v")),
    (disk("raw", "1"), disk("raw")),
]


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_properties_irrelevant_to_decisions_make_no_kind(one, other):
    assert one != other
    assert kind_of(one) == kind_of(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_properties_relevant_to_decisions_make_a_kind(one, other):
    assert kind_of(one) != kind_of(other)


def test_a_volume_goes_back_to_the_disk_that_it_was_made_of():
    for plain in (Resource("disk"), MOUNT, reserved(MOUNT, "a")):
        assert without_volume(volume(plain, "v", shared=True)) == plain


def test_a_provider_s_plain_resources_are_plain():
    assert kind_of(Resource("cpus", provider="p")).plain


def test_the_sidecar_s_number_is_kept_and_without_one_the_usual():
    many = [reserved(CPUS, f"role-{number}") for number in range(2 * KINDS_USUAL)]
    assert len(table_of(many)[1]) == KINDS_USUAL * 5 // 8 + 1
    assert len(table_of(many, 40)[1]) == 25 + 1
    assert len(table_of(many, 4 * KINDS_USUAL)[1]) == len(many)


def test_no_framework_uses_the_room_of_all_others():
    """As in the module's test KindsTest.NobodyTakesTheRoomOfAllOthers."""
    table, kinds = table_of([])

    def apart(resources, teller):
        row = [0] * len(table)
        for each in resources:
            row += [0] * (table.row(each) + 1 - len(row))
            row[table.row(each)] = 1000
        kinds.tell(row, teller)
        return sum(not kinds.kinds[kinds.handle(each)].rest for each in resources)

    def named(teller, count):
        return [Resource(f"{teller}-{number}") for number in range(count)]

    def owned(teller, count, **who):
        return [reserved(CPUS, f"{teller}-{number}", **who) for number in range(count)]

    assert apart(named("greedy", 2_000), "greedy") == 22
    assert apart(owned("many", 2_000), "many") == 107
    assert apart([Resource("fpga"), reserved(CPUS, "eng")], "honest") == 2
    assert apart(named("second", 2_000), "second") > 10
    assert apart(owned("second", 2_000, principal="who"), "third") > 10
    assert apart(owned("more", 1, principal="who"), "fourth") == 0
    assert apart([Resource("tpu"), reserved(CPUS, "ops")], "last") == 2
    assert apart(list(map(Resource, ("cpus", "mem", "disk", "gpus"))), "greedy") == 4
    assert kinds.kinds[kinds.handle(Resource("greedy-1999"))] == OTHERS
    assert len(kinds) < KINDS_USUAL


def test_names_that_come_late_find_room():
    """A plain divisible kind for each name, and one for its rest."""
    many = [reserved(CPUS, f"role-{number}") for number in range(2 * KINDS_USUAL)]
    _, kinds = table_of(many)
    for number in range(16):
        late = Resource(f"late-{number}")
        assert kinds.kinds[kinds.handle(late)] == kind_of(late)


@given(st.lists(resources(), max_size=60), st.integers(1, 40))
def test_each_resource_is_its_kind_or_the_rest_of_its_name(resources, kinds_max):
    """Names keep room for their rest, unless there are more names than room."""
    table, kinds = table_of(resources, kinds_max)
    assert len(kinds) <= kinds_max
    assert len(set(kinds.kinds)) == len(kinds)
    names = {(each.name, each.scalar) for each in resources}
    for each in resources:
        handle = kinds.handle(each)
        rest = Kind(each.name, scalar=each.scalar, rest=True)
        if handle < 0:
            assert len(names) > kinds_max // SPARE // 2
        else:
            assert kinds.kinds[handle] in (kind_of(each), rest, OTHERS)
    # A name has a second kind only if at most two others still have room in its part.
    told = len({kind_of(each) for each in resources}) + len(names) - 1
    if told * (1 + FREE_OF_OWN) < kinds_max * NAMED_EIGHTHS // 8:
        assert not any(kind.rest for kind in kinds.kinds)
    assert len(table) == len(set(resources))


@given(st.lists(resources(), min_size=1, max_size=12, unique=True), st.data())
def test_amounts_by_kind_are_those_of_the_objects(resources, data):
    table, kinds = table_of(resources)
    amounts = [1000 * data.draw(st.integers(0, 9)) for _ in resources]
    expected: Counter[Kind] = Counter()
    row = [0] * len(table)
    for each, amount in zip(resources, amounts, strict=True):
        expected[kind_of(each)] += amount
        row[table.row(each)] = amount
    told = kinds.by_kind(row)
    assert +Counter(dict(zip(kinds.kinds, told, strict=True))) == +expected


@given(
    st.lists(resources(), min_size=1, max_size=12, unique=True),
    st.integers(2, 40),
    st.data(),
)
def test_a_wish_is_filled_from_objects_that_are_there(resources, kinds_max, data):
    """At most the wanted amount of a kind, from available pieces; of a rest, whole objects."""
    _, kinds = table_of(resources, kinds_max)
    free = [1000 * data.draw(st.integers(0, 9)) for _ in resources]
    wanted = [data.draw(st.sampled_from([0, 500, 2000, 4500, 99_000])) for _ in kinds.kinds]
    taken = kinds.chop(free, wanted)
    for each, there, some in zip(resources, free, taken, strict=True):
        assert 0 <= some <= there
        handle = kinds.handle(each)
        if each.indivisible or each.shared or (handle >= 0 and kinds.kinds[handle].rest):
            assert some in (0, there)
        if not each.scalar:
            assert some % 1000 == 0
        if kinds.handle(each) < 0:
            assert some == 0
    given_by_kind, free_by_kind = kinds.by_kind(taken), kinds.by_kind(free)
    for handle, kind in enumerate(kinds.kinds):
        given, there, some = given_by_kind[handle], free_by_kind[handle], wanted[handle]
        if some >= there:
            assert given == there
        elif kind.rest or kind.indivisible or kind.shared:
            assert given <= some
        elif kind.scalar:
            assert given == some
        else:
            assert given == some - some % 1000


def test_whole_objects_are_taken_before_one_is_cut():
    small, large = LABELLED, reserved(CPUS, "a", principal="ops")
    _, kinds = table_of([large, small])
    assert kinds.chop((5000, 2000), (3000,)) == (1000, 2000)


def test_names_beyond_the_limit_are_not_sent():
    _, kinds = table_of([CPUS, Resource("mem"), Resource("gold")], 4)
    assert kinds.kinds == [Kind("cpus"), Kind("mem")]
    assert kinds.handle(Resource("gold")) == -1
    assert kinds.by_kind((1, 2, 3)) == (1, 2)
    assert kinds.chop((1, 2, 3), (9, 9)) == (1, 2, 0)
