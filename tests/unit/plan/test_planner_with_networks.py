"""Users' networks in plans: which cells there are, what they cost, and what a run keeps."""

from dataclasses import replace
from pathlib import Path

import pytest

from runner.core.errors import NothingSelectedError, RecordError, UsageError
from runner.core.model import Gpu, Measurement, Past, Plan, Request
from runner.matrix import Matrix, parse
from runner.plan.document import plan_document, read_plan
from runner.plan.planner import plan
from runner.report.coverage import coverage
from runner.report.plan import plan_table
from runner.store.run import Run
from tests.support.fake_runs import NOW
from tests.support.model_files import SOURCE, write_model

TEXT = """\
version: 1
workloads: {my-network: {file: my_network.py, cases: [small]}, rnn-step: {cases: [lstm-b32-h128]}}
environments:
  np: {framework: numpy, release: "2.0", image: x}
  torch-2.x: {framework: torch, release: "2.*", image: x, cuda: "13.0"}
  tf-1.8: {framework: tensorflow, release: "1.8.0", image: x}
"""
H200 = Gpu(uuid="GPU-1", name="H200", capability=(9, 0), driver="580.65.06")


def matrix_with(folder: Path, text: str = TEXT, source: str = SOURCE) -> Matrix:
    write_model(folder, source)
    return parse(text.encode(), "m.yaml", folder)


def planned(matrix: Matrix, gpu: Gpu | None = None, **changes: object) -> Plan:
    request = Request(
        environments=tuple(matrix.environments), workloads=("my-network",), device="cuda" if gpu else "cpu"
    )
    return plan(matrix, replace(request, **changes), {}, gpu)  # type: ignore[arg-type]


def ids(of: Plan) -> list[str]:
    return [entry.cell.id for entry in of.cells]


def test_a_class_has_the_phases_of_its_methods_and_other_frameworks_have_no_cell(tmp_path: Path) -> None:
    assert ids(planned(matrix_with(tmp_path))) == [
        "np/model/my-network/small/forward/fp32",
        "np/model/my-network/small/train/fp32",  # of a function, so that it may have both
        "torch-2.x/model/my-network/small/forward/fp32",
        "torch-2.x/model/my-network/small/train/fp32",
    ]


def test_a_plan_says_which_calls_its_time_is_for(tmp_path: Path) -> None:
    matrix = matrix_with(tmp_path)
    assert "networks whose calls take up to 0.05 s; with longer calls" in plan_table(planned(matrix, seconds=0.5))
    assert "whose calls" not in plan_table(planned(matrix, workloads=("rnn-step",)))


def test_compile_phases_can_be_selected_and_others_are_a_mistake(tmp_path: Path) -> None:
    with_phases = TEXT.replace("cases: [small]", "phases: [compile, train]")
    assert "torch-2.x/model/my-network/large/compile/fp32" in ids(planned(matrix_with(tmp_path, with_phases)))
    with pytest.raises(UsageError, match="my-network has no phase 'gradient'"):
        planned(matrix_with(tmp_path, TEXT.replace("cases: [small]", "phases: [gradient]")))


def test_compile_phases_that_are_requested_need_no_entry_in_the_matrix(tmp_path: Path) -> None:
    of = planned(matrix_with(tmp_path), phases=("compile", "compile-warm"), environments=("torch-2.x",))
    assert ids(of) == [
        "torch-2.x/model/my-network/small/compile/fp32",
        "torch-2.x/model/my-network/small/compile-warm/fp32",
    ]
    assert {entry.verdict for entry in of.cells} == {"run"}


def test_a_phase_that_the_matrix_does_not_list_is_named(tmp_path: Path) -> None:
    selector = "torch-2.x/model/my-network/small/compile/fp32"
    with pytest.raises(NothingSelectedError, match=r"hint: my-network is measured in forward, train: write phases: "):
        planned(matrix_with(tmp_path), chosen=lambda cell: cell == selector, cell_selectors=(selector,))


def test_sixteen_bits_need_a_class_that_takes_the_precision(tmp_path: Path) -> None:
    for source, code in ((SOURCE, None), (SOURCE.replace("precision, ", ""), "precision-lacks")):
        of = planned(matrix_with(tmp_path, source=source), H200, precisions=("fp16",))
        skips = {entry.cell.environment: entry.skip for entry in of.cells}
        assert (skips["torch-2.x"].code if skips["torch-2.x"] else None) == code


def test_an_estimate_that_is_a_guess_skips_nothing(tmp_path: Path) -> None:
    of = planned(matrix_with(tmp_path, TEXT + "measure: {timeout: 1}\n"))
    assert {entry.verdict for entry in of.cells} == {"run"}
    assert all(entry.deferred for entry in of.cells)
    assert planned(matrix_with(tmp_path), memory=1 << 29).cells[0].skip is not None


def test_the_plan_has_the_files_of_what_runs(tmp_path: Path) -> None:
    matrix = matrix_with(tmp_path)
    files = matrix.networks["my-network"].files
    assert planned(matrix).models == {files.digest: files}
    assert planned(matrix, workloads=("rnn-step",)).models == {}


def test_the_coverage_has_its_column(tmp_path: Path) -> None:
    assert "my-network" in coverage(planned(matrix_with(tmp_path)))


def test_a_run_keeps_the_files_and_gives_them_back(tmp_path: Path) -> None:
    of = planned(matrix_with(tmp_path))
    cases = {block.case_id: dict(block.spec) for block in of.blocks}
    run = Run.create(tmp_path, plan_document(of), cases, {}, {}, NOW, of.models.values())
    again = read_plan(run.plan(), run.cases(), Measurement(), Past(), run.models())
    assert (again.blocks, again.models) == (of.blocks, of.models)
    (layers,) = run.path.glob("models/*/layers.py")
    layers.write_text("changed")
    with pytest.raises(RecordError, match=r"layers\.py was changed since the run started"):
        run.models()
    layers.unlink()
    with pytest.raises(RecordError, match=r"layers\.py cannot be read: No such file"):
        run.models()
    (names,) = run.path.glob("models/*.json")
    names.write_text(names.read_text().replace("layers.py", "../../x"))
    with pytest.raises(RecordError, match="it does not agree with its checksum"):
        run.models()
    names.unlink()
    with pytest.raises(RecordError, match=r"\.json cannot be read"):
        run.models()
