"""Tables on narrow terminals: which columns are left out or cut, without broken values."""

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from allocator.cli.render.fitting import GAP, fit, joined, shortened

COLUMNS = ["framework", "role", ">waited", ">share", "needs", "~cause"]


@given(
    st.lists(st.integers(5, 300), min_size=6, max_size=6),
    st.integers(40, 200),
    st.permutations(["role", "waited", "needs", "cause"]),
)
def test_a_table_fits_wherever_its_numbers_do(widths, room, drop):
    widths[2], widths[3] = 6, 5
    found = fit(COLUMNS, widths, drop, room)
    assert sum(found.values()) + GAP * (len(found) - 1) <= room
    assert all(found[place] == widths[place] for place in (2, 3) if place in found)
    assert {0, 3} <= found.keys()


def test_nothing_is_left_out_or_cut_without_need():
    assert fit(COLUMNS, [10, 5, 6, 5, 10, 30], COLUMNS, 80) == dict(
        enumerate([10, 5, 6, 5, 10, 30])
    )


def test_the_least_important_columns_are_omitted_first():
    found = fit(COLUMNS, [20, 20, 6, 5, 20, 36], ["needs", "role", "cause"], 80)
    assert list(found) == [0, 2, 3, 5]


@given(st.text(max_size=60), st.integers(1, 60))
def test_a_text_is_cut_to_its_width(text, width):
    cut = shortened(text, width)
    assert cell_len(cut) <= max(width, 1)
    assert cut == text or cut.endswith("…")


def test_amounts_are_cut_between_two_of_them():
    assert shortened("cpus:64;mem:262144;disk:1000000", 20) == "cpus:64;mem:262144;…"
    assert shortened("eng, ops, science", 12) == "eng, ops, …"


def test_a_line_has_as_many_parts_as_fit():
    assert joined(["no answer", "drf", "x" * 80], 40) == "no answer, drf"
    assert joined(["x" * 80], 10) == "xxxxxxxxx…"
    assert joined([], 10) == ""
