"""The files of profiles: what is written is read again, and what is damaged is a sentence."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from runner.store.profile_files import MAX_PROFILE_BYTES, StoredProfile, profile_path, read_profiles, write_profile

CELL, OTHER = "a/x/w/c/train/fp32", "b/x/w/c/train/fp32"
ROW = {"name": "mm", "calls": 2.0, "host_seconds": 0.5, "device_seconds": 0.0, "total_seconds": 0.5}
PROFILE: dict[str, Any] = {
    "reason": "",
    "profiler": "torch.profiler",
    "framework_version": "2.13.0",
    "steps": 3,
    "step_seconds": 0.6,
    "plain_step_seconds": 0.5,
    "rows": [ROW],
    "left_out": {"rows": 0, "host_seconds": 0.0, "device_seconds": 0.0},
}


def read(run: Path) -> tuple[dict[str, StoredProfile], list[str]]:
    """Return the profiles of a run, and the sentences about those that are left out."""
    sentences: list[str] = []
    return dict(read_profiles(run, (CELL, OTHER), sentences.append)), sentences


def test_a_profile_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert read(tmp_path) == ({}, [])
    write_profile(tmp_path, CELL, PROFILE)
    write_profile(tmp_path, OTHER, {"reason": "numpy has no profiler"})
    profiles, sentences = read(tmp_path)
    assert not sentences
    assert asdict(profiles[CELL]) == {"cell": CELL, **PROFILE, "rows": (ROW,)}
    assert profiles[OTHER] == StoredProfile(cell=OTHER, reason="numpy has no profiler")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda text: text.replace("0.6", "0.7"), "it does not agree with its checksum"),
        (lambda text: text[:50], "not JSON"),
        (lambda _: " " * (MAX_PROFILE_BYTES + 1), "larger than"),
        (lambda _: json.dumps({"version": 1, "cell": CELL, "reason": "", "rows": [{}]}), "rows.0.name is missing"),
        (lambda _: json.dumps({"version": 1, "cell": OTHER, "reason": "x"}), f"it is the profile of '{OTHER}'"),
        (lambda _: json.dumps({"version": 9, "cell": CELL, "reason": "x"}), "has version 9"),
    ],
)
def test_a_damaged_profile_is_left_out_with_a_sentence(tmp_path: Path, change: Any, sentence: str) -> None:
    write_profile(tmp_path, CELL, PROFILE)
    write_profile(tmp_path, OTHER, PROFILE)
    path = profile_path(tmp_path, CELL)
    path.write_text(change(path.read_text()))
    profiles, (text,) = read(tmp_path)
    assert list(profiles) == [OTHER]
    assert sentence in text
    assert text.startswith(f"profiles/{path.name} is left out: ")
