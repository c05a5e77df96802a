"""What systemd, cron and CI services are told is what they read back: paths with spaces, percent signs and quotes."""

import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
import yaml

from runner.cli.schedule import schedule
from runner.core.errors import MatrixError, RunnerError, UsageError
from runner.watch.schedule import Form, ScheduledNight, advice, clock, files
from runner.watch.schedule.quoting import systemd_word

ODD = ("--corpus", 'a b%c"$HOME\\d', "np-*", "it's")


MATRIX = """\
version: 1
workloads: {rnn-step: {}}
environments: {np: {framework: numpy, release: "2.0", python: "3.11", requirements: [numpy]}}
presets: {quick: {select: [rnn-step/*]}}
"""


def job(folder: str = "/srv/od d%50 $x", words: tuple[str, ...] = ODD, **environ: str) -> ScheduledNight:
    return ScheduledNight(python="/opt/a b/python", folder=Path(folder), words=words, at=(2, 5), environ=environ)


def setting(unit: str, name: str) -> list[str]:
    return re.findall(f"^{name}=(.*)$", unit, re.MULTILINE)


def read_back(line: str) -> list[str]:
    """Return the words of a systemd setting: quotes and backslashes as in C, then specifiers."""
    return [word.replace("%%", "%") for word in shlex.split(line)]  # of a shell's rules only these are in use


def as_cron(line: str) -> str:
    """Return the command that cron hands to the shell, after Vixie cron's do_command.c."""
    command, escaped = "", False
    for sign in line.split(" ", 5)[5].rstrip("\n"):
        if escaped and sign == "%":
            command = command[:-1]
        elif sign == "%":
            return command
        command, escaped = command + sign, sign == "\\" and not escaped
    return command


def test_the_service_runs_this_installation_in_this_folder() -> None:
    units = files(job(PATH="/bin:/a b", HOME="/root", DOCKER_HOST="unix:///a%b"), "systemd")
    assert list(units) == ["matrix-runner-od-d-50-x.service", "matrix-runner-od-d-50-x.timer"]
    service, timer = units.values()
    assert setting(service, "WorkingDirectory") == ["/srv/od d%%50 $x"]
    (command,) = setting(service, "ExecStart")
    words = ["/opt/a b/python", "-P", "-m", "runner", "nightly", *ODD]
    assert [word.replace("$$", "$") for word in read_back(command)] == words
    assert "$$HOME" in command
    assert [read_back(line) for line in setting(service, "ExecStopPost")] == [
        ["/opt/a b/python", "-P", "-m", "runner", "clocks", "reset"]
    ]
    settings = [read_back(line) for line in setting(service, "Environment")]
    assert settings == [["PATH=/bin:/a b"], ["DOCKER_HOST=unix:///a%b"]]
    assert setting(service, "KillSignal") == ["SIGINT"]
    assert setting(service, "KillMode") == ["mixed"]
    assert not setting(service, "SuccessExitStatus")  # a slow-down is to fail the unit
    assert setting(timer, "OnCalendar") == ["*-*-* 02:05:00"]
    assert setting(timer, "Persistent") == ["true"]


def test_the_line_of_a_crontab_is_read_back() -> None:
    words = (*ODD, "back\\%slash", "100%", "\\\\%")
    (lines,) = files(job(words=words, PATH="/bin:/a%b"), "cron").values()
    comment, line, if_missed = lines.splitlines()
    assert comment.startswith("# matrix-runner-od-d-50-x: ")
    assert line.startswith("5 2 * * * ")
    assert if_missed.startswith("35 * * * * ")
    start = [
        *("cd", "/srv/od d%50 $x", "&&", "exec", "env", "PATH=/bin:/a%b"),
        *("/opt/a b/python", "-P", "-m", "runner", "nightly"),
    ]
    assert shlex.split(as_cron(line)) == [*start, *words]
    assert shlex.split(as_cron(if_missed)) == [*start, "--if-missed", "02:05", *words]


@pytest.mark.parametrize("text", ["25:00", "2:60", "noon", "", "02:30:00"])
def test_what_is_no_time_of_day_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="as a time of day"):
        clock(text)
    assert clock("7:05") == (7, 5)


def test_words_are_quoted_where_they_have_to_be() -> None:
    assert [systemd_word(word) for word in ("a=b", "a b", "", "%n", "a\\")] == ["a=b", '"a b"', '""', "%%n", '"a\\\\"']


def test_what_a_format_cannot_hold_is_refused() -> None:
    for form in get_args(Form):
        for sign in "\n\x85\u2028\x1b\x9b\ufeff\udcff":  # YAML ends a line at the first three
            for refused in (job(f"/srv/a{sign}b"), job(words=("--corpus", sign)), job(PATH=f"/bin:{sign}")):
                with pytest.raises(UsageError, match="control character"):
                    files(refused, form)
    with pytest.raises(UsageError, match="cannot work in the folder"):
        files(job("/srv/a "), "systemd")
    with pytest.raises(UsageError, match="cron takes"):
        files(job(PATH="/x" * 600), "cron")


def test_a_folder_without_a_name_has_units_too() -> None:
    assert job("/").name == "matrix-runner-root"
    assert "enable --now matrix-runner-root.timer" in advice(job("/"), "systemd", None)
    assert "put the two units" not in advice(job("/"), "systemd", Path("there"))
    assert "crontab -e" in advice(job("/"), "cron", None)


def test_what_the_night_would_refuse_is_refused_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "matrix.yaml").write_text("version: 1\nenvironments: []\n")
    with pytest.raises(MatrixError, match=r"matrix\.yaml:2"):
        schedule()
    with pytest.raises(Exception, match="No such option: --prest"):
        schedule(["--prest", "quick"])
    with pytest.raises(UsageError, match="into a folder"):
        schedule(format="cron", output=tmp_path)
    (tmp_path / "matrix.yaml").write_text(MATRIX)
    for words, message in (
        (["--history", "postgresql://ann:hunter2@db/bench"], "can read a password in --history"),
        (["--budget", "6hours"], "6hours"),
        (["--preset", "quikc"], "there is no preset 'quikc'"),
    ):
        with pytest.raises(RunnerError, match=message):
            schedule(words, format="github", output=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_units_are_written_into_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "matrix.yaml").write_text("version: 1\nenvironments: {}\nworkloads: {}\n")
    assert schedule(["--budget", "6h"], at="03:00", output=tmp_path / "a" / "units") == 0
    service, timer = sorted((tmp_path / "a" / "units").iterdir())
    assert "nightly --budget 6h\n" in service.read_text()
    assert "03:00:00" in timer.read_text()
    assert schedule(format="cron") == 0
    out, err = capsys.readouterr()
    assert "\n30 2 * * * cd " in out
    assert "systemctl --user enable --now" in err
    assert schedule(["--budget", "6h"], format="github", output=tmp_path / "repository") == 0
    assert "cron:" in (tmp_path / "repository/.github/workflows/nightly.yml").read_text()


SECRETS = {
    "MATRIX_RUNNER_ALERTS": "json://n0bodymayread@host",
    "MATRIX_RUNNER_HISTORY": "postgresql://ann:n0bodymayread@host/db",
}
HISTORIES = (
    *("postgresql://ann:n0bodymayread@host/db", "postgresql://ann:se?n0bodymayread@host/db"),
    *("postgresql://ann:se/n0bodymayread@host/db", "postgresql://ann:n0bodymayread@host:port/db"),
    "postgresql://host/db?password=n0bodymayread",
)


@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("form", get_args(Form))
def test_no_file_and_no_advice_has_a_secret_of_this_shell(form: Form, history: str) -> None:
    environ = {"MATRIX_RUNNER_ALERTS_FILE": "/srv/alerts", **SECRETS, "MATRIX_RUNNER_HISTORY": history}
    secret = replace(job(), environ=environ)
    text = "\n".join(files(secret, form).values()) + advice(secret, form, None)
    assert "n0bodymayread" not in text
    assert "MATRIX_RUNNER_ALERTS" in text, "where it goes instead is there"
    open_history = job(MATRIX_RUNNER_HISTORY="postgresql://ann@host/db")
    assert ("postgresql://ann@host/db" in "".join(files(open_history, form).values())) == (form in ("systemd", "cron"))


def test_a_workflow_of_github_runs_the_command_and_no_expression_of_an_option() -> None:
    words = ("--budget", "6h", "--name", "it's ${{ secrets.X }} $HOME")
    (text,) = files(job(words=words), "github").values()
    workflow = yaml.load(text, yaml.BaseLoader)
    assert workflow["on"]["schedule"] == [{"cron": "5 2 * * *"}]
    assert workflow["concurrency"] == {"group": "matrix-runner-od-d-50-x", "cancel-in-progress": "false"}
    nightly = workflow["jobs"]["nightly"]
    _, measure, reset = nightly["steps"]
    assert measure["env"]["MATRIX_RUNNER_ALERTS"] == "${{ secrets.MATRIX_RUNNER_ALERTS }}"
    command = measure["run"].replace("${{ '${{' }}", "${{")  # as GitHub evaluates it
    reports = "$HOME/.local/share/matrix-runner/matrix-runner-od-d-50-x/reports"
    assert shlex.split(command) == ["/opt/a b/python", "-P", "-m", "runner", "nightly", *words, "--reports", reports]
    assert (reset["if"], shlex.split(reset["run"])[-2:]) == ("always()", ["clocks", "reset"])


def test_a_job_of_gitlab_runs_the_command_when_its_schedule_says_so() -> None:
    (text,) = files(job(words=("--reports=/srv/reports",)), "gitlab").values()
    nightly = yaml.safe_load(text)["nightly"]
    assert nightly["rules"] == [{"if": '$CI_PIPELINE_SOURCE == "schedule"'}]
    assert nightly["resource_group"] == "matrix-runner-od-d-50-x"
    (command,), (after,) = nightly["script"], nightly["after_script"]
    assert shlex.split(command) == ["/opt/a b/python", "-P", "-m", "runner", "nightly", "--reports=/srv/reports"]
    assert after.endswith("clocks reset\n")
    assert "Pipeline schedules): 5 2 * * *" in text
