"""The demo's tables fit in eighty columns, without breaking a number."""

import io

import pytest
from rich.console import Console

from allocator.cli.render import terminal
from laboratory.cli.render import demo_tables
from laboratory.experiments.claims import CLAIMS, ClaimVerdict


@pytest.fixture
def printed(monkeypatch) -> io.StringIO:
    """The output on a terminal of eighty columns."""
    text = io.StringIO()
    console = Console(file=text, width=80, highlight=False)
    for module in (demo_tables, terminal):
        monkeypatch.setattr(module, "console", lambda: console)
    return text


def test_a_claim_keeps_its_numbers_whole_and_wraps_between_words(printed):
    verdicts = [
        ClaimVerdict(claim, (), -12.345, -1234.5, 1111.25, outcome)
        for claim in CLAIMS
        for outcome in ("holds", "not shown", "contrary")
    ]
    demo_tables.print_claims(verdicts, 10)
    table = printed.getvalue().partition("mean over")[0]
    lines = table.splitlines()
    assert max(map(len, lines)) <= 80
    assert table.count("-1234.50 to +1111.25") == len(verdicts)
    for unit in {claim.unit for claim in CLAIMS}:
        shown = sum(claim.unit == unit for claim in CLAIMS) * 3
        assert table.count(f"-12.35 {unit} ") + table.count(f"-12.34 {unit} ") == shown
    words = {word for line in lines[1:] for word in line.split()}
    wanted = {word for claim in CLAIMS for word in claim.text.split()}
    assert wanted <= words


def test_a_claim_that_does_not_hold_is_explained(printed):
    explained = next(claim for claim in CLAIMS if claim.reason)
    verdict = ClaimVerdict(explained, (), -1.0, -2.0, -0.5, "contrary")
    demo_tables.print_claims([verdict], 3)
    text = " ".join(printed.getvalue().split())
    assert " ".join(explained.reason.split()) in text
