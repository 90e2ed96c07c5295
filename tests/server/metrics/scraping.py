"""Parses metrics as Prometheus does."""

from collections.abc import Mapping

from prometheus_client.parser import text_string_to_metric_families

Samples = Mapping[tuple[str, tuple[tuple[str, str], ...]], float]


def samples(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Every sample by name (without the prefix) and sorted labels, without duplicates."""
    found: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = (
                sample.name.removeprefix("mesos_allocator_"),
                tuple(sorted(sample.labels.items())),
            )
            assert key not in found
            found[key] = sample.value
    return found


def value(of: Samples, name: str, /, **labels: str) -> float:
    """The only sample of a name with these labels among others."""
    (found,) = series(of, name, **labels).values()
    return found


def series(of: Samples, name: str, /, **labels: str) -> dict[tuple[tuple[str, str], ...], float]:
    """All samples of a name with these labels."""
    return {
        all_labels: number
        for (each, all_labels), number in of.items()
        if each == name and labels.items() <= dict(all_labels).items()
    }
