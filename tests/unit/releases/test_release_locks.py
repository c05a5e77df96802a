"""How the locks of releases are made: with what gives way, of which day, and from which index."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from runner.core.errors import Problem, ProvisionError
from runner.releases import release_locks
from runner.releases.lock import LockResult
from runner.releases.lock_requests import LockRequest
from runner.releases.release_locks import lock_of_its_time, lock_release

CUDNN = "nvidia-cudnn-cu12==9.15.1.9"
Solvable = Callable[[LockRequest], bool]
Locks = Callable[..., list[LockRequest]]


@pytest.fixture
def locks(monkeypatch: pytest.MonkeyPatch) -> Locks:
    """Return the requests that are resolved from now on; those fail that have no solution, or whose index is silent."""

    def start(solvable: Solvable, *, silent: bool = False, reached: bool = True) -> list[LockRequest]:
        tried: list[LockRequest] = []

        def lock(request: LockRequest) -> LockResult:
            tried.append(request)
            if silent and request.index:
                raise ProvisionError("lock", Problem("no answer"), passing=True)
            if not solvable(request):
                raise ProvisionError("lock", Problem(f"no solution {len(tried)}"))
            return LockResult(path=request.out, changed=True, packages=())

        monkeypatch.setattr(release_locks, "lock", lock)
        monkeypatch.setattr(release_locks, "answers", lambda *_: reached)
        monkeypatch.setattr(release_locks, "as_of", lambda *_: date(2025, 8, 1))
        return tried

    return start


def request(*exact: str, others: tuple[str, ...] = ("numpy==1.19.5",), index: str | None = None) -> LockRequest:
    return LockRequest(
        name="torch-2.9.1",
        requirements=("torch==2.9.1", *others, *exact),
        python="3.11",
        out=Path("lock.txt"),
        index=index,
        exact=exact,
    )


def test_the_versions_of_the_template_give_way_and_those_that_were_named_do_not(locks: Locks) -> None:
    tried = locks(lambda each: "numpy" in each.requirements)
    lock_release(request(CUDNN))
    assert [each.requirements[1:] for each in tried] == [("numpy==1.19.5", CUDNN), ("numpy", CUDNN)]
    assert not any(each.overrides for each in tried)


def test_what_was_named_counts_instead_of_what_another_package_requires(locks: Locks) -> None:
    tried = locks(lambda each: each.overrides == (CUDNN,))
    lock_release(request("transformers==4.57.0", CUDNN, others=()))
    assert [each.overrides for each in tried] == [(), ("transformers==4.57.0",), (CUDNN,)]
    assert all(each.requirements == ("torch==2.9.1", "transformers==4.57.0", CUDNN) for each in tried)


def test_without_a_solution_the_first_reason_is_given(locks: Locks) -> None:
    tried = locks(lambda _: False)
    with pytest.raises(ProvisionError, match=r"no solution 1$"):
        lock_release(request(CUDNN))
    assert len(tried) == 4


def test_an_outage_is_no_contradiction(locks: Locks) -> None:
    tried = locks(lambda _: True, silent=True)
    with pytest.raises(ProvisionError, match="no answer"):
        lock_release(request(CUDNN, index="https://torch.test/cpu"))
    assert len(tried) == 1


@pytest.mark.parametrize("reached", [False, True])
def test_an_index_that_does_not_answer_is_left_out_and_named(*, reached: bool, locks: Locks) -> None:
    tried = locks(lambda _: True, silent=True, reached=reached)
    notes = [*lock_of_its_time(request(index="https://torch.test/cpu"))]
    addresses = ["https://torch.test/cpu"] if reached else []
    assert [each.index for each in tried] == [*addresses, None]
    assert tried[-1].as_of == date(2025, 8, 1)
    assert notes[0].startswith("torch-2.9.1: https://torch.test/cpu does not answer")


def test_a_release_has_the_packages_of_its_time_or_those_of_today(locks: Locks) -> None:
    tried = locks(lambda each: each.as_of is None)
    notes = [*lock_of_its_time(request(others=()))]
    assert [each.as_of for each in tried] == [date(2025, 8, 1), None]
    assert notes == ["torch-2.9.1: cannot be resolved with the packages of 2025-08-01, and has those of today"]
    assert not [*lock_of_its_time(replace(request(others=()), index="https://torch.test/cpu"))]
