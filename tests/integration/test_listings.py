"""``runner list environments`` and ``runner list presets``, which look at the engine and the device of this machine."""

import re
from pathlib import Path

from runner.session.listed_environments import environment_rows
from runner.session.listed_presets import preset_rows
from tests.integration.conftest import ROOT

MATRIX = """\
version: 1
environments:
  np-old: {framework: numpy, release: "1.26.4", python: "3.11", lock: old.txt}
  np-2.x: {framework: numpy, release: "2.*", python: "3.11", lock: new.txt, requirements: [numpy==2.4.6]}
  tf-gpu:
    framework: tensorflow
    release: "1.8.0"
    python: "3.6"
    variants: {cuda: {image: x, cuda: "9.0", cudnn: "7.0"}}
workloads:
  rnn-step: {}
"""
LOCK = "numpy=={} --hash=sha256:" + "ab" * 32 + "\n"


def test_each_environment_has_its_release_python_and_state(tmp_path: Path) -> None:
    file = tmp_path / "matrix.yaml"
    file.write_text(MATRIX)
    (tmp_path / "old.txt").write_text(LOCK.format("1.26.4"))
    (tmp_path / "new.txt").write_text(LOCK.format("2.4.6"))
    rows = {row[0]: row[1:] for row in environment_rows(file)}
    assert rows["np-old"][:3] == ("NumPy 1.26.4", "Python 3.11", "not built")
    assert rows["np-2.x"][0] == "NumPy 2.4.6"
    assert rows["tf-gpu"][0] == "TensorFlow 1.8.0"
    has_gpu = Path("/dev/nvidiactl").exists()
    assert has_gpu or rows["tf-gpu"][1:] == ("", "", "not here: needs a GPU")


def test_every_preset_of_the_shipped_matrix_says_what_it_is_for() -> None:
    rows = {row[0]: row[1:] for row in preset_rows(ROOT / "matrix.yaml")}
    assert list(rows) == ["quick", "heritage", "smoke", "networks", "standard", "published"]
    for count, duration, about in rows.values():
        assert re.fullmatch(r"[1-9]\d* tests?", count), count
        assert re.search(r"(\d (s|min|h)|days|weeks)\b", duration), duration
        assert about
