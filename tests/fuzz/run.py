"""Fuzz a target for a while, guided by coverage: ``python -m tests.fuzz.run wire --seconds 60``.

Needs atheris, which `make fuzz` installs. Inputs with new coverage are kept in
``.cache/fuzz/TARGET``; an input that fails is written beside it, and should be added to the corpus
once its defect is fixed.
"""

import argparse
import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["allocator"], exclude=["allocator.v1"]):
    from tests.fuzz.targets import TARGETS

from allocator.core.numba.compiled import interpret

CORPUS = Path(__file__).parent / "corpus"
KEPT = Path(".cache/fuzz")
INPUT_BYTES_MAX = 4_096
INPUT_S_MAX = 120


def main() -> None:
    """Fuzz, and print libFuzzer's figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", choices=sorted(TARGETS))
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0, help="0: another one each time")
    given = parser.parse_args()
    target = TARGETS[given.target]
    kept = KEPT / given.target
    kept.mkdir(parents=True, exist_ok=True)
    options = [
        f"-max_total_time={given.seconds}",
        f"-max_len={INPUT_BYTES_MAX}",
        f"-timeout={INPUT_S_MAX}",
        f"-seed={given.seed}",
        f"-artifact_prefix={KEPT / given.target}-",
        "-print_final_stats=1",
        "-rss_limit_mb=4096",
    ]

    # Numba cannot compile instrumented code, and compiled code has no coverage.
    interpret(True)

    def one(data: bytes) -> None:
        target(data)

    atheris.Setup([sys.argv[0], *options, str(kept), str(CORPUS / given.target)], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
