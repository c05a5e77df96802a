"""What a person reads about a regression, and what they can do next."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from runner.core.errors import UsageError
from runner.nights.night import NightChange
from runner.watch.alerts import overview
from runner.watch.alerts.message import AlertEvidence, commands, issue, opened_message
from tests.support.nights import BEFORE, Receivers, change, ended, many, night, run_of

CELLS = many(8)
KEY = f"torch-2.x-{run_of(1)}"
LARGEST = "torch-2.x/nn-lstm/asr-lstm/7x320/train/fp32"


def known(reports: Path, changes: Sequence[NightChange] = (), facts: Mapping[str, str] | None = None) -> AlertEvidence:
    """Return what is known about an alert of a night with some changes."""
    slower = changes or [change(of, run_of(1), 1.1 + index / 100) for index, of in enumerate(CELLS)]
    ended(reports, night(1, slower, CELLS, facts=facts), Receivers())
    (alert,) = overview.overview(reports).alerts
    assert alert.known
    return alert.known


def test_a_message_says_what_where_since_when_and_what_to_do(tmp_path: Path) -> None:
    message = opened_message(known(tmp_path, facts={"cuDNN": "9.2"}))
    assert message.title == "torch-2.x up to 17 % slower: 8 tests, on NVIDIA H200"
    lines = message.body.splitlines()
    assert lines[0].endswith("slower on NVIDIA H200, docker: confirmed by the night of 2026-12-01 02:30 UTC.")
    assert lines[2] == f"Against the last good run, {BEFORE} of 2026-11-20 02:30 UTC:"
    assert lines[3] == "  nn-lstm/asr-lstm/7x320/train/fp32: 17 % slower (16 % to 18 %), alternating, 9 rounds"
    assert lines[8] == f"  and 3 more tests: `runner alerts --issue {KEY}` prints them"
    assert lines[9] == "  differs: torch 2.9.0 → 2.9.1, cuDNN 1 → 9.2"
    assert lines[10] == "  1 package in other versions: triton"
    assert len(message.body) < 2000, "more is cut off by some services"


def test_the_commands_are_about_the_largest_change(tmp_path: Path) -> None:
    assert {what: shlex.split(command) for what, command in commands(known(tmp_path))} == {
        "Look": ["runner", "history", LARGEST],
        "Reproduce": ["runner", "reproduce", f"{run_of(1)}/{LARGEST}"],
        "Find the release": ["runner", "bisect", LARGEST, "--good", "2.9.0", "--bad", "2.9.1"],
        "Accept": ["runner", "history", "accept", "torch-2.x", "--run", run_of(1), "--reason", "REASON"],
    }


def test_the_commands_name_the_folder_of_the_nights(tmp_path: Path) -> None:
    for _, command in commands(known(tmp_path), tmp_path):
        assert shlex.split(command)[-2:] == ["--reports", str(tmp_path)]
    assert f"--issue {KEY} --reports {tmp_path}`" in opened_message(known(tmp_path), tmp_path).body


def test_a_version_of_development_is_searched_among_the_builds_of_nights(tmp_path: Path) -> None:
    evidence = known(tmp_path)
    step = replace(evidence.steps[0], release="2.10.0.dev20261201")
    assert dict(commands(replace(evidence, steps=(step,))))["Find the release"].endswith("--axis nightly")


def test_a_single_cell_is_named(tmp_path: Path) -> None:
    single = known(tmp_path, [change(CELLS[0], run_of(1), against="anchor")])
    title = "torch-2.x 10 % slower: nn-lstm/asr-lstm/0x320/train/fp32, on NVIDIA H200"
    message = opened_message(single)
    assert message.title == title
    assert "Against the anchor," in message.body
    assert dict(commands(single))["Accept"].startswith(f"runner history accept {CELLS[0].id} ")


def test_a_change_of_a_series_says_since_when(tmp_path: Path) -> None:
    slower = change(CELLS[0], run_of(1), against="series")
    since = "its ratio to the pinned base is higher since run 20261128-023000-aaaa"
    lines = opened_message(known(tmp_path, [replace(slower, reason=since)])).body.splitlines()
    assert lines[2].startswith("Against the level of earlier nights, ")
    assert lines[4] == f"  {since}"


def test_an_issue_has_all_cells_in_a_table(tmp_path: Path) -> None:
    known(tmp_path)
    body = overview.issue_body(tmp_path, KEY)
    assert body.startswith("# torch-2.x up to 17 % slower: 8 tests, on NVIDIA H200\n")
    assert sum(line.startswith("| nn-lstm/") for line in body.splitlines()) == 8
    assert f"```sh\nrunner bisect {LARGEST} --good 2.9.0 --bad 2.9.1 --reports {tmp_path}\n```" in body
    with pytest.raises(UsageError, match="there is no open alert 'torch'") as refused:
        overview.issue_body(tmp_path, "torch")
    assert KEY in str(refused.value)


def test_text_of_an_environment_is_text_everywhere(tmp_path: Path) -> None:
    hostile = {"cuDNN": "<!channel> @everyone\x1b[31m [x](https://evil.example)", "CUDA": "| `rm` **b** <script>"}
    evidence = known(tmp_path, facts=hostile)
    message, body = opened_message(evidence), overview.issue_body(tmp_path, KEY)
    for text in (message.title, message.body, body):
        assert not set("\x1b<>@") & set(text.replace("\\x1b", ""))
        assert "://" not in text
    assert "\\[x\\](https:evil.example)" in body
    assert "\\`rm\\` \\*\\*b\\*\\*" in body
    assert "\\| " in body
    overview.overview(tmp_path).text()


def test_a_hostile_id_in_a_stored_night_is_a_word_of_the_commands(tmp_path: Path) -> None:
    of = replace(CELLS[0], case="x; rm -rf $HOME `id`\n```\n# heading")
    known(tmp_path, [change(of, run_of(1))])
    body = overview.issue_body(tmp_path, KEY)
    assert "\n# heading" not in body
    (line,) = (line for line in body.splitlines() if line.startswith("runner history 'torch"))
    assert shlex.split(line)[:2] == ["runner", "history"]
    assert shlex.split(line)[3:] == ["--reports", str(tmp_path)]


def test_a_regression_that_another_night_confirmed_has_its_interval_in_turns(tmp_path: Path) -> None:
    first = night(1, [change(CELLS[0], run_of(1), 1.25)], CELLS)
    later = night(2, [replace(change(CELLS[0], run_of(1), 1.05), again=None, state="no-time")], CELLS)
    ended(tmp_path, replace(first, alerts=()), Receivers(), targets=())
    (tmp_path / f"nights/{run_of(1)}.json").write_text(
        (tmp_path / f"nights/{run_of(1)}.json").read_text().replace('"alerts": [', '"ignored": [')
    )
    ended(tmp_path, later, Receivers())
    (alert,) = overview.overview(tmp_path).alerts
    assert "1.25x slower (1.24x to 1.26x), alternating, 9 rounds" in overview.overview(tmp_path).text()
    assert alert.json()["largest"] == {"cell": CELLS[0].id, "ratio": 1.25}


def test_an_issue_mentions_nobody_and_holds_no_link(tmp_path: Path) -> None:
    """The name of a device is what a driver says; a title and a heading mention as well as a row does."""
    hostile = "@everyone <https://x.example> H200"
    evidence = replace(known(tmp_path), device=hostile, backend=hostile, environment=hostile)
    evidence = replace(evidence, steps=tuple(replace(step, before=hostile) for step in evidence.steps))
    text = issue(evidence)
    commands_of = [line for line in text.splitlines() if line.startswith("runner ")]
    shown = "\n".join(line for line in text.splitlines() if line not in commands_of)
    assert "@everyone" not in shown
    assert "https://" not in shown
    message = opened_message(evidence)
    assert "@everyone" not in message.title + message.body
