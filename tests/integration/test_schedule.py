"""What `runner schedule` prints, checked with the tools that read it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.conftest import Runner

WORDS = ("--", "np-*", "--preset", "tiny", "--budget", "6h", "--name", "it's ${{ secrets.X }} 100%\"$d\\e")
SEARCHED = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath), "/usr/sbin"])
SCHEMA_CHECK = shutil.which("check-jsonschema", path=SEARCHED)
CRONTAB = shutil.which("crontab", path=SEARCHED)
GITHUB = ("--builtin-schema", "vendor.github-workflows")
GITLAB = ("--builtin-schema", "vendor.gitlab-ci", "--data-transform", "gitlab-ci")


@pytest.fixture
def odd(runner: Runner) -> Runner:
    """The command line in a folder whose name every format has to quote."""
    folder = runner.folder / 'od d%50 "$x'
    folder.mkdir()
    (runner.folder / "matrix.yaml").rename(folder / "matrix.yaml")
    runner.folder = folder
    return runner


def checked(*command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, capture_output=True, text=True, check=False)


def written(runner: Runner, form: str) -> list[str]:
    """Write the files of a format; return their paths."""
    made = runner("schedule", "--format", form, "-o", form, *WORDS)
    assert made.returncode == 0, made.stderr
    return sorted(str(path) for path in (runner.folder / form).rglob("*") if path.is_file())


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze on this machine")
def test_systemd_takes_the_units(odd: Runner) -> None:
    units = written(odd, "systemd")
    assert len(units) == 2
    done = checked("systemd-analyze", "verify", *units)
    assert done.returncode == 0, done.stderr
    assert "matrix-runner" not in done.stderr
    timer = Path(units[1])
    timer.write_text(timer.read_text().replace("Persistent=true", "Persistent=perhaps"))
    assert ":9: Failed to parse boolean" in checked("systemd-analyze", "verify", *units).stderr, "it reads the setting"


@pytest.mark.skipif(CRONTAB is None, reason="no crontab on this machine")
def test_cron_takes_the_lines(odd: Runner, tmp_path: Path) -> None:
    assert CRONTAB
    printed = odd("schedule", "--format", "cron", *WORDS)
    assert printed.returncode == 0, printed.stderr
    lines = tmp_path / "crontab"
    lines.write_text(printed.stdout)
    option = "-T" if checked(CRONTAB, "-T", str(lines)).returncode == 0 else "-n"  # cronie, or Debian's cron
    done = checked(CRONTAB, option, str(lines))
    assert done.returncode == 0, done.stderr
    lines.write_text(printed.stdout.replace("30 2 *", "30 25 *"))
    assert checked(CRONTAB, option, str(lines)).returncode != 0, "it reads the lines"


@pytest.mark.skipif(SCHEMA_CHECK is None, reason="check-jsonschema is not installed")
@pytest.mark.parametrize(
    ("form", "schema", "setting"), [("github", GITHUB, "timeout-minutes: "), ("gitlab", GITLAB, "resource_group: ")]
)
def test_ci_services_take_the_workflow(odd: Runner, form: str, schema: tuple[str, ...], setting: str) -> None:
    assert SCHEMA_CHECK
    (path,) = written(odd, form)
    done = checked(SCHEMA_CHECK, *schema, path)
    assert done.returncode == 0, done.stdout
    text = Path(path).read_text()
    assert setting in text
    Path(path).write_text(text.replace(setting, f"{setting}{{}} #"))
    assert checked(SCHEMA_CHECK, *schema, path).returncode == 1, "it reads the setting"
