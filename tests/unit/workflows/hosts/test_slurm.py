"""What the commands of Slurm answer, and what the executor makes of it; the tests of integration have a real Slurm."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from runner.core.errors import EngineError, UsageError
from runner.workflows.hosts import tasks
from runner.workflows.hosts.executors import Completion, slurm, slurm_commands
from runner.workflows.hosts.executors.slurm import SlurmExecutor
from runner.workflows.hosts.executors.slurm_commands import SilentError, failure

REPLY = tasks.reply(b"an offer", "ab" * 16)
ACCOUNT = "Invalid account or account/partition combination specified"
FAILED = "sbatch: error: Batch job submission failed: "
POLICY = "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"
QUIET = "Unable to contact slurm controller (connect failure)"


@pytest.mark.parametrize(
    ("command", "output", "kind", "message"),
    [
        ("sbatch", f"{FAILED}{ACCOUNT}\n", UsageError, f"Slurm refuses the job: {ACCOUNT}"),
        ("sbatch", f"sbatch: error: a first line\n{FAILED}{POLICY}", UsageError, f"Slurm refuses the job: {POLICY}"),
        ("sbatch", f"{FAILED}{QUIET}", SilentError, f"sbatch: {QUIET}"),
        ("squeue", f"slurm_load_jobs error: {QUIET}", SilentError, QUIET),
        ("sbatch", f"{FAILED}I/O error", EngineError, "sbatch failed: I/O error"),
        ("squeue", "", EngineError, "squeue failed: it gave no reason"),
    ],
)
def test_a_command_that_fails_says_why(command: str, output: str, kind: type[Exception], message: str) -> None:
    error = failure(command, output)
    assert type(error) is kind
    assert error.problems[0].message.endswith(message)
    assert bool(error.problems[0].hint) == (kind is not EngineError)


class FakeSlurm:
    """The commands of Slurm, in memory: ``jobs`` are the lines of squeue by number."""

    def __init__(self) -> None:
        """Have no jobs."""
        self.commands: list[Sequence[str]] = []
        self.jobs: dict[str, str] = {}
        self.silent = False
        self.seconds = 0.0

    def answer(self, command: Sequence[str]) -> str:
        """Answer as the command does."""
        if self.silent:
            raise SilentError(f"{command[0]}: {QUIET}")
        self.commands.append(command)
        if command[0] == "sbatch":
            self.jobs[number := str(len(self.jobs) + 1)] = "RUNNING|node7|None"
            return f"{number};cluster\n"
        return "".join(f"{number}|{fields}\n" for number, fields in self.jobs.items())

    def monotonic(self) -> float:
        """Return the seconds; each look takes one."""
        self.seconds += 1.0
        return self.seconds

    def sleep(self, seconds: float) -> None:
        """Take no time."""
        self.seconds += seconds


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeSlurm:
    """Slurm's commands are those of a stand-in."""
    commands = FakeSlurm()
    monkeypatch.setattr(slurm_commands, "answer", commands.answer)
    monkeypatch.setattr(slurm, "time", commands)
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    return commands


def _ended(executor: SlurmExecutor, tries: int = 30) -> Completion:
    for _ in range(tries):
        for completion in executor.completed(1.0):
            return completion
    pytest.fail("nothing ended")


def test_a_killed_job_on_a_gpu_is_followed_by_one_that_restores_the_clocks(fake: FakeSlurm, tmp_path: Path) -> None:
    messages: list[str] = []
    executor = SlurmExecutor("gpu?gres=gpu:1&time=2:00:00", tmp_path, messages.append)
    executor.submit("slurm-1", b"a task")
    fake.jobs["1"] = "NODE_FAIL|node7|NodeDown"
    completion = _ended(executor)
    assert (completion.lost, completion.reason) == (True, "job 1 of Slurm on node7 ended: NODE_FAIL")
    last = [command for command in fake.commands if command[0] == "sbatch"][-1]
    assert {"--nodelist=node7", "--gres=gpu:1", "--partition=gpu"} <= set(last)
    assert last[-1].endswith("-m runner clocks reset")
    assert last.index("--time=5") > last.index("--time=2:00:00")  # the last one counts
    assert messages == ["job 2 of Slurm restores the clocks on node7 if they are still locked"]


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ("TIMEOUT", "give its block more time with time=2:00:00 in the address"),
        ("FAILED", "the nodes have to share this folder"),
        ("PREEMPTED", "job 1 of Slurm on node7 ended: PREEMPTED"),
    ],
)
def test_a_job_on_a_cpu_ends_without_a_reply(state: str, reason: str, fake: FakeSlurm, tmp_path: Path) -> None:
    executor = SlurmExecutor("cpu", tmp_path)
    executor.submit("slurm-1", b"a task")
    fake.jobs["1"] = f"{state}|node7|None"
    completion = _ended(executor)
    assert completion.lost == (state == "PREEMPTED")
    assert completion.reason.endswith(reason)
    assert len(fake.jobs) == 1
    executor.close()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("reply", "kept"), [(REPLY, 0), (tasks.refusal("the disk is full", "ab" * 16), 1)])
def test_the_output_of_a_job_is_kept_if_it_failed(reply: bytes, kept: int, fake: FakeSlurm, tmp_path: Path) -> None:
    messages: list[str] = []
    executor = SlurmExecutor("cpu", tmp_path, messages.append)
    executor.submit("slurm-1", b"a task")
    executor.jobs["slurm-1"].file(".log").write_text("what happened")
    executor.jobs["slurm-1"].file(".reply").write_bytes(reply)
    assert _ended(executor) == Completion("slurm-1", reply)
    executor.close()
    logs = [*tmp_path.glob("slurm-*/*")]
    assert len(logs) == len(messages) == kept
    assert all(
        sentence.endswith(f"failed; its output is in {log}") for sentence, log in zip(messages, logs, strict=True)
    )


def test_a_controller_that_restarts_costs_nothing(fake: FakeSlurm, tmp_path: Path) -> None:
    messages: list[str] = []
    executor = SlurmExecutor("cpu?devices=2", tmp_path, messages.append)
    executor.submit("slurm-1", b"a task")
    fake.silent = True
    executor.submit("slurm-2", b"a task")  # which Slurm gets later
    assert not [*executor.completed(30.0)]
    executor.jobs["slurm-1"].file(".reply").write_bytes(REPLY)
    assert _ended(executor) == Completion("slurm-1", REPLY)
    fake.silent = False
    assert not [*executor.completed(1.0)]
    assert fake.jobs.keys() == {"1", "2"}
    assert [sentence.partition(" (")[0] for sentence in messages] == ["Slurm does not answer", "Slurm answers again"]


def test_a_driver_takes_what_one_that_was_killed_has_not_collected(fake: FakeSlurm, tmp_path: Path) -> None:
    killed, other_run, executor = (SlurmExecutor("cpu?devices=2", tmp_path) for _ in range(3))
    for key, token in (("slurm-1", "ab" * 16), ("slurm-2", "cd" * 16)):
        killed.submit(key, tasks.reply(b"", token))
        other_run.submit(key, tasks.reply(b"", "ef" * 16))
    killed.jobs["slurm-1"].file(".reply").write_bytes(REPLY)
    assert [*executor.uncollected({"ab" * 16, "cd" * 16})] == [REPLY]
    (submitted,) = [each for each in fake.commands if str(killed.jobs["slurm-2"].path) in each[-1]]
    (name,) = [option.removeprefix("--job-name=") for option in submitted if option.startswith("--job-name=")]
    assert fake.commands[-1] == ["scancel", f"--name={name}"]
    assert [*tmp_path.iterdir()] == [other_run.folder]
    assert len([*other_run.folder.iterdir()]) == 2


def test_a_controller_that_stays_silent_ends_the_run(fake: FakeSlurm, tmp_path: Path) -> None:
    executor = SlurmExecutor("cpu", tmp_path)
    executor.submit("slurm-1", b"a task")
    fake.silent = True
    with pytest.raises(SilentError, match="Unable to contact slurm controller"):
        executor.completed(2 * slurm.SILENT_SECONDS)


@pytest.mark.parametrize("rest", ["", "gpu?devices=0", "gpu?gres=", "gpu?nodes=4", "a/b", "gpu;rm"])
def test_a_wrong_address_is_refused(rest: str, fake: FakeSlurm, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not an address"):
        SlurmExecutor(rest, tmp_path)


def test_a_host_without_slurm_is_no_place_to_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(UsageError, match="there is no command sbatch"):
        SlurmExecutor("gpu", tmp_path)
