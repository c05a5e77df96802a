"""What the commands of Slurm answer, and what the executor makes of it; the tests of integration have a real Slurm."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from runner.core.errors import EngineError, UsageError
from runner.hosts import tasks
from runner.hosts.executors import slurm, slurm_commands
from runner.hosts.executors.executor import Completion
from runner.hosts.executors.slurm import SlurmExecutor
from runner.hosts.executors.slurm_commands import SilentError, failure

REPLY = tasks.reply(b"an offer", "ab" * 16)
ACCOUNT = "Invalid account or account/partition combination specified"
FAILED = "sbatch: error: Batch job submission failed: "
POLICY = "BlockTask violates accounting/QOS policy (job submit limit, user's size and/or time limits)"
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
        self.refused = " "
        self.seconds = 0.0

    def answer(self, command: Sequence[str]) -> str:
        """Answer as the command does."""
        if self.silent:
            raise SilentError(f"{command[0]}: {QUIET}")
        self.commands.append(command)
        if command[0] == "sbatch" and any(option.startswith(self.refused) for option in command):
            raise failure("sbatch", f"{FAILED}Requested node configuration is not available")
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
    monkeypatch.setattr(slurm_commands, "time", commands)
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    return commands


def _ended(executor: SlurmExecutor, tries: int = 30) -> Completion:
    for _ in range(tries):
        for completion in [*executor.completed(1.0)]:
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
    assert _ended(executor) == Completion("slurm-1", reply, host="node7")
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
    assert _ended(executor) == Completion("slurm-1", REPLY, host=slurm.UNKNOWN)
    fake.silent = False
    assert not [*executor.completed(1.0)]
    assert fake.jobs.keys() == {"1", "2"}
    assert [sentence.partition(" (")[0] for sentence in messages] == ["Slurm does not answer", "Slurm answers again"]


def _task(run: str = "") -> bytes:
    """Return a task of a run, or an inquiry."""
    return json.dumps({"kind": "job", "run": run} if run else {"kind": "inquiry"}).encode()


def _cancelled(fake: FakeSlurm) -> set[str]:
    return {command[1].removeprefix("--name=") for command in fake.commands if command[0] == "scancel"}


def test_a_driver_takes_what_one_that_was_killed_has_not_collected(fake: FakeSlurm, tmp_path: Path) -> None:
    killed, inquiring, of_another_run, alive, later = (SlurmExecutor("cpu?devices=2", tmp_path) for _ in range(5))
    for key in ("slurm-1", "slurm-2"):
        for executor, run in ((killed, "this"), (inquiring, ""), (of_another_run, "other"), (alive, "this")):
            executor.submit(key, _task(run))
    killed.jobs["slurm-1"].file(".reply").write_bytes(REPLY)
    for executor in (killed, inquiring, of_another_run):
        executor.lock.close()  # as the end of its process does
    assert [*later.uncollected("this")] == [REPLY]
    assert _cancelled(fake) == {killed.jobs["slurm-2"].name, *(job.name for job in inquiring.jobs.values())}
    assert {*tmp_path.iterdir()} == {of_another_run.folder, alive.folder}
    assert len([*of_another_run.folder.glob("*.task")]) == len([*alive.folder.glob("*.task")]) == 2


def test_blocks_that_a_driver_has_not_used_are_kept_for_the_next_one(fake: FakeSlurm, tmp_path: Path) -> None:
    executor = SlurmExecutor("cpu?devices=3", tmp_path)
    for key in executor.devices():
        executor.submit(key, _task("this"))
    names = [job.name for job in executor.jobs.values()]
    for key in ("slurm-1", "slurm-2"):
        executor.jobs[key].file(".reply").write_bytes(REPLY)
    assert next(iter(executor.completed(1.0))).key == "slurm-1"  # and the driver fails before it has used it
    executor.close()
    assert _cancelled(fake) == set(names[1:])
    assert [*SlurmExecutor("cpu", tmp_path).uncollected("this")] == [REPLY, REPLY]
    assert not [*tmp_path.iterdir()]


def test_jobs_that_cannot_be_cancelled_leave_what_a_later_driver_needs(fake: FakeSlurm, tmp_path: Path) -> None:
    messages: list[str] = []
    executor = SlurmExecutor("cpu", tmp_path, messages.append)
    executor.submit("slurm-1", _task("this"))
    (job,) = executor.jobs.values()
    fake.silent = True
    executor.close()
    assert messages == [f"jobs of Slurm still wait or run (scancel: {QUIET}): resuming the run cancels them"]
    fake.silent = False
    assert not [*SlurmExecutor("cpu", tmp_path).uncollected("this")]
    assert _cancelled(fake) == {job.name}
    assert not [*tmp_path.iterdir()]


def test_a_job_whose_number_was_lost_is_cancelled_before_its_task_is_submitted_again(
    fake: FakeSlurm, tmp_path: Path
) -> None:
    executor = SlurmExecutor("cpu", tmp_path)
    fake.silent = True
    executor.submit("slurm-1", _task("this"))
    fake.silent = False
    assert not [*executor.completed(1.0)]
    name = executor.jobs["slurm-1"].name
    cancel, submit = (command for command in fake.commands if command[0] != "squeue")
    assert cancel == ["scancel", f"--name={name}"]
    assert f"--job-name={name}" in submit


def test_nodes_to_avoid_get_a_job_only_if_there_is_no_other(fake: FakeSlurm, tmp_path: Path) -> None:
    executor = SlurmExecutor("cpu?devices=2", tmp_path)
    executor.nodes = {"node3", "node7"}  # the names that Slurm has used
    executor.submit("slurm-1", _task("this"), {"node7", "node3", "node7.example.com", "slurm-1", slurm.UNKNOWN})
    assert "--exclude=node3,node7" in fake.commands[-1]
    fake.refused = "--exclude"
    executor.submit("slurm-2", _task("this"), {"node7"})
    assert [option for option in fake.commands[-1] if option.startswith("--exclude")] == []


def test_a_job_that_waits_for_nodes_that_are_down_may_go_to_the_others(fake: FakeSlurm, tmp_path: Path) -> None:
    executor = SlurmExecutor("cpu", tmp_path)
    executor.nodes = {"node7"}
    executor.submit("slurm-1", _task("this"), {"node7"})
    name = executor.jobs["slurm-1"].name
    fake.jobs["1"] = "PENDING||ReqNodeNotAvail, UnavailableNodes:node8"
    assert not [*executor.completed(30.0)]
    assert _cancelled(fake) == {name}
    last = [command for command in fake.commands if command[0] == "sbatch"][-1]
    assert f"--job-name={name}" in last
    assert not [option for option in last if option.startswith("--exclude")]


def test_a_reply_of_a_job_whose_number_was_lost_is_taken(fake: FakeSlurm, tmp_path: Path) -> None:
    executor = SlurmExecutor("cpu", tmp_path)
    fake.silent = True
    executor.submit("slurm-1", _task("this"))
    executor.jobs["slurm-1"].file(".reply").write_bytes(REPLY)
    fake.silent = False
    assert _ended(executor).result == REPLY
    assert not [command for command in fake.commands if command[0] == "sbatch"]


def test_a_controller_that_stays_silent_ends_the_run(fake: FakeSlurm, tmp_path: Path) -> None:
    executor = SlurmExecutor("cpu", tmp_path)
    executor.submit("slurm-1", b"a task")
    fake.silent = True
    with pytest.raises(SilentError, match="Unable to contact slurm controller"):
        [*executor.completed(2 * slurm_commands.SILENT_SECONDS)]


@pytest.mark.parametrize("rest", ["", "gpu?devices=0", "gpu?gres=", "gpu?nodes=4", "a/b", "gpu;rm"])
def test_a_wrong_address_is_refused(rest: str, fake: FakeSlurm, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not an address"):
        SlurmExecutor(rest, tmp_path)


def test_a_host_without_slurm_is_no_place_to_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(UsageError, match="there is no command sbatch"):
        SlurmExecutor("gpu", tmp_path)


@pytest.mark.parametrize("printed", ["", "Submitted batch job 26", "12\x1b[2J", "-1", "\u0661\u0662"])
def test_a_job_whose_number_is_not_printed_ends_the_run_and_is_cancelled(
    fake: FakeSlurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: str
) -> None:
    commands: list[Sequence[str]] = []

    def answer(command: Sequence[str]) -> str:
        commands.append(command)
        return printed if command[0] == "sbatch" else ""

    assert not fake.commands
    monkeypatch.setattr(slurm_commands, "answer", answer)
    executor = SlurmExecutor("cpu", tmp_path)
    with pytest.raises(EngineError, match=r"sbatch printed '.*' and not the number of a job") as caught:
        executor.submit("slurm-1", b"a task")
    assert str(caught.value).isprintable() or "\n" in str(caught.value)
    assert "\x1b" not in str(caught.value)
    (name,) = (job.name for job in executor.jobs.values())
    executor.close()
    assert [command[0] for command in commands] == ["sbatch", "scancel"]
    assert commands[-1] == ["scancel", f"--name={name}"]
