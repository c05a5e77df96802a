"""``python -m tests.fuzz TARGET --inputs 1000000 --minutes 10``: a long run, with atheris where it is installed."""

import argparse
import importlib.util
import resource
import sys
import tempfile
from pathlib import Path
from typing import Any

ADDRESS_SPACE = 4 << 30


def main() -> int:
    """Run a target; exit 1 if an input broke something."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("target", help="all, or one of tests/fuzz/targets.py, such as matrix")
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir(), "matrix-runner-fuzz"))
    parser.add_argument("--engine", choices=("auto", "random", "atheris"), default="auto")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    guided = options.engine == "atheris" or (options.engine == "auto" and importlib.util.find_spec("atheris"))
    if guided:
        return _guided(options)
    from tests.fuzz.engine import keep, run
    from tests.fuzz.targets import TARGETS, corpus

    broken = 0
    for target in TARGETS if options.target == "all" else [options.target]:
        kept = [value for _, value in corpus(target)]
        totals = run(target, options.inputs, 60 * options.minutes, options.seed, kept, _say)
        keep(totals, options.keep / target)
        for line in totals.lines():
            _say(line)
        broken += len(totals.broken)
    return 1 if broken else 0


def _guided(options: Any) -> int:
    """Let atheris choose the draws by the branches of the program that they reach."""
    atheris: Any = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["runner"]):
        from tests.fuzz.engine import Totals, keep
        from tests.fuzz.strategies import GENERATORS
    import os
    import time

    from tests.fuzz.draws import Draws

    totals, begin = Totals(options.target), time.monotonic()

    def test_one(data: bytes) -> None:
        totals.try_input(GENERATORS[options.target](Draws.from_bytes(data)))
        totals.seconds = time.monotonic() - begin
        if totals.inputs >= options.inputs or totals.seconds > 60 * options.minutes:
            keep(totals, options.keep / options.target)
            for line in totals.lines():
                _say(line)
            os._exit(1 if totals.broken else 0)  # libFuzzer does not return

    arguments = [sys.argv[0], f"-seed={options.seed + 1}", "-max_len=400", "-timeout=60", "-rss_limit_mb=0"]
    atheris.Setup(arguments, test_one)
    atheris.Fuzz()
    return 0


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
