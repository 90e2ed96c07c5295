"""The public interface changes only on purpose."""

from tests.surface import KEPT, surface


def test_nothing_is_lost_or_renamed_by_accident():
    kept, now = KEPT.read_text("utf-8").splitlines(), surface().splitlines()
    lost, new = sorted(set(kept) - set(now)), sorted(set(now) - set(kept))
    mend = "`python -m tests.surface` writes the list, CHANGELOG.md says why"
    assert kept == now, f"{mend}; lost: {lost}; new: {new}"
