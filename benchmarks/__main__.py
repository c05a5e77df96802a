"""Measure the figures that are named, all by default, and print one table: ``nox -s bench -- startup planning``."""

import argparse
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence

from benchmarks import (
    against_asv,
    against_torch,
    costs,
    history_site,
    history_size,
    hosts,
    large_run,
    long_run,
    memory,
    minutes,
    named_releases,
    report_size,
    rounds,
    settling,
    telemetry,
    verdict_speed,
)
from benchmarks.table import Row, UnmeasurableError, circumstances, load, table

FIGURES: Mapping[str, Callable[[], Iterable[Row]]] = {
    "startup": costs.start_up,
    "planning": costs.planning,
    "named-releases": named_releases.rows,
    "rounds": rounds.rows,
    "long-run": long_run.rows,
    "minutes": minutes.rows,
    "provision": costs.provisioning,
    "report": report_size.rows,
    "large-run": large_run.rows,
    "history-site": history_site.rows,
    "history": history_size.rows,
    "hosts": hosts.rows,
    "verdicts": verdict_speed.rows,
    "telemetry": telemetry.rows,
    "memory": memory.rows,
    "agreement": against_torch.rows,
    "agreement-docker": against_torch.in_container,
    "asv": against_asv.rows,
    "settling": settling.rows,
}


def measured(name: str) -> tuple[list[Row], bool]:
    """Return the rows of a figure, and whether it went as it should; what is not here goes well, and says so."""
    sys.stderr.write(f"{name} ...\n")
    rows: list[Row] = []
    try:
        rows.extend(FIGURES[name]())
    except UnmeasurableError as error:
        return [*rows, Row(name, reason=str(error))], True
    except Exception as error:  # noqa: BLE001  one figure that fails must not cost the others
        traceback.print_exc()
        return [*rows, Row(name, reason=f"{type(error).__name__}, see above")], False
    return rows, True


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print, and return 1 where a figure failed; one that misses its target is no failure."""
    parser = argparse.ArgumentParser(prog="nox -s bench --", description=__doc__)
    parser.add_argument("figures", nargs="*", metavar="FIGURE", help=", ".join(FIGURES))
    names = parser.parse_args(words).figures or list(FIGURES)
    unknown = [name for name in names if name not in FIGURES]
    if unknown:
        parser.error(f"there is no figure {', '.join(unknown)}; there are {', '.join(FIGURES)}")
    begin, before = time.monotonic(), load()
    results = [measured(name) for name in names]
    print(table(row for rows, _ in results for row in rows))
    print(circumstances(before, load(), time.monotonic() - begin))
    return 0 if all(well for _, well in results) else 1


if __name__ == "__main__":
    sys.exit(main())
