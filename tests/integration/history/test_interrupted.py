"""Writers that are killed, that write at the same time, and a server that stops: nothing half, nothing twice."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import text

from runner.core.errors import HistoryError
from runner.history import writes
from runner.history.database import History
from runner.history.engine import engine_of, writing
from tests.support.histories import BOARDS, CELL, many_cells, measured, night
from tests.support.postgresql import Server

ROOT = Path(__file__).parents[3]
KILLS = int(os.environ.get("HISTORY_KILLS", "3"))
"""Writers that are killed at a random moment; the suite kills three with each database."""
NIGHTS, CELLS = 12, 120
WRITER = f"""
import sys
from runner.history.database import History
from tests.support.histories import many_cells, night
with History.open(sys.argv[1]) as history:
    print("ready", flush=True)
    for number in range({NIGHTS}):
        for seconds in (0.5, 0.7):  # the second time it has been resumed
            history.add(night(number, *many_cells({CELLS}, seconds)))
print("done", flush=True)
"""


DRIVERS = """
import os, sys
from runner.history.database import History
from tests.support.histories import of_hosts

def add(first):
    with History.open(sys.argv[1]) as history:
        numbers = (*range(first, first + 4), *range((first + 4) % 32, (first + 4) % 32 + 4))
        return sum(history.add(of_hosts(number)) for number in numbers)

drivers = []
for number in range(8):
    driver = os.fork()
    if driver == 0:
        try:
            os._exit(add(4 * number))
        finally:
            os._exit(100)
    drivers.append(driver)
print(*(os.waitstatus_to_exitcode(os.waitpid(driver, 0)[1]) for driver in drivers))
"""
"""Eight processes; each adds four runs of its own and four of another, and exits with how many were new."""


def complete(history: History) -> None:
    """Assert that every run has all of its cells or none, and that none is twice."""
    rows = history.runs()
    assert len({row.run for row in rows}) == len(rows)
    points = [point for _, _, points in history.all_series() for point in points]
    assert len(points) == len(rows) * CELLS
    for row in rows:
        times = {point.seconds for point in points if point.run == row.run}
        assert times in ({0.5}, {0.7})


def writer(url: str) -> "subprocess.Popen[str]":
    """Start a process that adds NIGHTS nights, each twice."""
    command = [sys.executable, "-c", WRITER, url]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def test_a_killed_writer_leaves_whole_runs_and_the_next_goes_on(url: str) -> None:
    draw = random.Random(7)
    for _ in range(KILLS):
        process = writer(url)
        time.sleep(draw.uniform(0, 0.25))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        with History.open(url) as history:
            complete(history)
        if url.startswith("sqlite"):
            with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
                assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
                assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
            connection.close()
    out, _ = writer(url).communicate(timeout=120)
    assert out == "done\n"
    with History.open(url) as history:
        complete(history)
        assert len(history.runs()) == NIGHTS
        assert {point.seconds for _, _, points in history.all_series() for point in points} == {0.7}


def test_several_writers_lose_nothing_and_count_nothing_twice(url: str) -> None:
    """Each opens the empty database at the same time, and half of what it adds another adds as well."""

    def add(first: int) -> int:
        with History.open(url) as history:
            return sum(history.add(night(number, *many_cells(CELLS))) for number in range(first, first + 8))

    with ThreadPoolExecutor(4) as pool:
        added = list(pool.map(add, (0, 4, 8, 12)))
    assert sum(added) == 20
    with History.open(url) as history:
        complete(history)
        assert len(history.runs()) == 20


def test_eight_drivers_add_runs_of_several_hosts_at_the_same_time(server: Server) -> None:
    """Each opens the empty database at the same time, and every run is added by two drivers."""
    url = server.new_schema()
    command = [sys.executable, "-c", DRIVERS, url]
    result = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True
    )
    added = [int(number) for number in result.stdout.split()]
    assert len(added) == 8
    assert sum(added) == 32
    with History.open(url) as history:
        assert len(history.runs()) == len({row.run for row in history.runs()}) == 32
        points = [point for _, _, of in history.all_series() for point in of]
        assert len(points) == len(
            {(point.run, point.device, cell) for _, cell, of in history.all_series() for point in of}
        )
        assert len(points) == 32 * 6
        boards = {(point.device_uuid, point.device, point.host) for point in points}
        assert boards == {(each.device, f"docker {each.device_name}", each.host) for each in BOARDS}
    engine = engine_of(url)
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM boards")).scalar() == 3
    engine.dispose()


def test_what_fails_in_the_middle_of_a_run_leaves_nothing_of_it(url: str) -> None:
    with History.open(url) as history:
        history.add(night(1))
    engine = engine_of(url)

    def fail() -> None:
        with writing(engine, url) as connection:
            writes.add_run(connection, night(2, *many_cells(5)))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    engine.dispose()
    with History.open(url) as history:
        assert [row.run for row in history.runs()] == [night(1).run]
        assert len(history.cells()) == 2


def test_a_server_that_stops_in_the_middle_of_a_write_is_a_sentence(server: Server) -> None:
    url = server.new_schema()
    with History.open(url) as history:
        history.add(night(1, *many_cells(CELLS)))
        engine = engine_of(url)

        def write() -> None:
            with writing(engine, url) as connection:
                writes.add_run(connection, night(2, *many_cells(CELLS)))
                server.stop()
                writes.add_run(connection, night(3, *many_cells(CELLS)))

        try:
            with pytest.raises(HistoryError) as stopped:
                write()
            with pytest.raises(HistoryError, match="cannot be written"):
                history.add(night(4, *many_cells(CELLS)))
            with pytest.raises(HistoryError, match="cannot be read"):
                history.runs()
        finally:
            server.start()
            engine.dispose()
        assert "cannot be written" in str(stopped.value)
        complete(history)
        assert [row.run for row in history.runs()] == [night(1).run]
        assert history.add(night(2, *many_cells(CELLS)))  # the same history goes on with new connections
        complete(history)


def test_another_writer_is_waited_for(url: str) -> None:
    with History.open(url) as history:
        engine = engine_of(url)
        with ThreadPoolExecutor(1) as pool:
            with writing(engine, url) as connection:
                writes.add_run(connection, night(1))
                waiting = pool.submit(history.add, night(2))
                assert len(history.runs()) == 0  # readers wait for nobody
            assert waiting.result(timeout=120)
        assert len(history.series(CELL)) == 2
        engine.dispose()


def test_a_reader_sees_a_run_as_it_was_when_it_began(url: str) -> None:
    with History.open(url) as history:
        history.add(night(1, measured(), *many_cells(3)))
        series = history.all_series()
        first = next(series)
        with History.open(url) as other:
            other.add(night(2, measured(), *many_cells(3)))
        assert [len(points) for _, _, points in (first, *series)] == [1] * 4
