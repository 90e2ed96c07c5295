"""Amounts with units, as operators, frameworks and configurations write them."""

import re

import pytest

from allocator.core import parse_quantities


@pytest.mark.parametrize(
    ("text", "milli_mib"),
    [
        ("4096", 4_096_000),
        ("4GB", 3_814_697),
        ("4G", 3_814_697),
        ("4Gi", 4_096_000),
        ("4GiB", 4_096_000),
        ("512Mi", 512_000),
        ("0.5Ki", 0),
        ("1Ti", 1_048_576_000),
    ],
)
@pytest.mark.parametrize("name", ["mem", "disk"])
def test_suffixes_are_powers_of_1000_or_of_1024_bytes(name, text, milli_mib):
    assert parse_quantities(f"cpus:2;{name}:{text}") == {"cpus": 2000, name: milli_mib}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mem:much", "mem: 'much' is not a number of MiB; write it as in 'mem:4096' or 'mem:4Gi'"),
        ("mem:4QB", "mem: '4QB' is not a number of MiB; a suffix is one of K, M, G, T or P"),
        ("cpus:4G", "cpus: '4G' is not a number: only mem and disk take a suffix"),
        ("mem:99999999Ti", "MiB"),
    ],
)
def test_a_wrong_unit_is_an_error_that_names_the_right_ones(text, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_quantities(text)
