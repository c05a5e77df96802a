"""``--model``: which workloads it selects, and which names and frameworks it refuses."""

from dataclasses import replace
from pathlib import Path

import pytest

from runner.core.errors import NothingSelectedError, UsageError
from runner.core.model import Past, Request
from runner.matrix import Matrix, parse
from runner.plan.planner import plan
from runner.session.networks import network_notes, with_models, with_stored_networks
from runner.session.options import Options
from tests.support.model_files import write_model

TEXT = b"""\
version: 1
workloads: {rnn-step: {cases: [lstm-b32-h128], phases: [train]}}
environments:
  np: {framework: numpy, release: "2.0", image: x}
  tf-1.8: {framework: tensorflow, release: "1.8.0", image: x}
presets: {quick: {select: ["rnn-step/*"]}}
"""


def matrix() -> Matrix:
    return parse(TEXT, "m.yaml")


def workloads(folder: Path, **typed: object) -> set[str]:
    """Return the workloads of the cells that options select."""
    options = Options(model=[str(write_model(folder))], **typed)  # type: ignore[arg-type]
    extended, selected = with_models(matrix(), options)
    request = Request(environments=("np",), workloads=tuple(selected or ()), preset=options.preset)
    return {entry.cell.workload for entry in plan(extended, request, {}).cells}


def test_a_model_file_alone_is_selected_alone(tmp_path: Path) -> None:
    assert workloads(tmp_path) == {"my-network"}


def test_a_workload_or_a_preset_is_selected_besides(tmp_path: Path) -> None:
    assert workloads(tmp_path, workload=["rnn-step"]) == {"my-network", "rnn-step"}
    assert workloads(tmp_path, preset="quick") == {"my-network", "rnn-step"}


def test_without_a_model_nothing_changes() -> None:
    known = matrix()
    assert with_models(known, Options(workload=["rnn-step"])) == (known, ["rnn-step"])


def test_a_name_that_is_taken_is_refused(tmp_path: Path) -> None:
    first = write_model(tmp_path / "a")
    for second, by in ((write_model(tmp_path / "b"), f"the file {first}"), (tmp_path / "rnn_step.py", "the program")):
        write_model(second.parent, name=second.name)
        with pytest.raises(UsageError, match=r"the name '.*' is taken by") as caught:
            with_models(matrix(), Options(model=[str(first), str(second)]))
        assert by in str(caught.value)


def test_a_name_before_the_file_is_that_of_the_workload(tmp_path: Path) -> None:
    first, second = write_model(tmp_path / "a"), write_model(tmp_path / "b")
    extended, selected = with_models(matrix(), Options(model=[str(first), f"mine={second}"]))
    assert selected == ["my-network", "mine"]
    assert extended.networks["mine"].path == second
    with pytest.raises(UsageError, match=rf"hint: give it another name: --model my-network-2={second}"):
        with_models(matrix(), Options(model=[str(first), str(second)]))


def test_a_phase_that_a_selector_names_is_measured(tmp_path: Path) -> None:
    path = write_model(tmp_path)
    cell = "model/my-network/small/compile/fp32"
    for selectors, cells, phases in (
        (["np"], [], ("forward", "train")),
        ([f"np/{cell}"], [], ("compile", "forward", "train")),
        (None, [cell], ("compile", "forward", "train")),
    ):
        extended, _ = with_models(matrix(), Options(model=[str(path)], selectors=selectors), cells)
        assert extended.workloads["my-network"].phases == phases


def test_a_variant_that_a_selector_names_is_no_phase(tmp_path: Path) -> None:
    source = """
VARIANTS = {"numpy": ["eager", "compile"]}
PHASES = ["decode"]
class NumpyModel:
    def __init__(self, variant): ...
    def train(self): ...
    def decode(self): ...
"""
    path = write_model(tmp_path, source)
    for selector, phases in (("np/compile/*", ("train", "decode")), ("np/*/compile/*", ("compile", "train", "decode"))):
        extended, _ = with_models(matrix(), Options(model=[str(path)], selectors=[selector]))
        assert extended.phases_of("my-network") == phases
    cell = "compile/my-network/default/train/fp32"
    for selectors, cells in (([f"np/{cell}"], []), ([f"*/{cell}"], []), (None, [cell])):  # of run, and of bisect
        extended, _ = with_models(matrix(), Options(model=[str(path)], selectors=selectors), cells)
        assert extended.phases_of("my-network") == ("train", "decode")


def test_variants_and_phases_of_a_stored_plan_can_be_planned_again(tmp_path: Path) -> None:
    source = "VARIANTS = {'numpy': ['a', 'b>=3']}\nPHASES = ['decode']\nclass NumpyModel:\n"
    source += "    def __init__(self, variant): ...\n    def decode(self): ...\n"
    extended, _ = with_models(matrix(), Options(model=[str(write_model(tmp_path, source))]))
    request = Request(environments=("np",), workloads=("my-network",))
    stored = replace(plan(extended, request, {}), past=Past())
    again = plan(with_stored_networks(matrix(), stored), replace(request, precisions=("fp32",)), {})
    assert [(entry.cell.id, entry.verdict) for entry in again.cells] == [
        ("np/a/my-network/default/decode/fp32", "run"),
        ("np/b/my-network/default/decode/fp32", "skip"),
    ]
    assert [block.spec for block in again.blocks] == [block.spec for block in stored.blocks]


NETS = """\
from torch import nn
from layers import double


class UNet(nn.Module):
    def forward(self, x): ...


class Other(nn.Module):
    def forward(self, x): ...
"""


def test_classes_of_a_file_are_measured_with_the_inputs_that_are_given(tmp_path: Path) -> None:
    path = write_model(tmp_path, NETS, "nets.py")
    options = Options(model=[f"{path}:UNet", f"{path}:Other", str(write_model(tmp_path))], input=["1x3x64x64"])
    extended, selected = with_models(matrix(), options)
    assert selected == ["unet", "other", "my-network"]
    assert list(extended.networks["unet"].cases) == ["1x3x64x64"]
    assert sorted(extended.networks["unet"].files.files) == ["layers.py", "nets.py", "unet_wrapper.py"]
    assert "1x3x64x64" not in extended.networks["my-network"].cases


def test_the_same_class_with_other_arguments_needs_another_name(tmp_path: Path) -> None:
    path = write_model(tmp_path, NETS.replace("    def", "    def __init__(self, a=1): ...\n    def"), "nets.py")
    with pytest.raises(
        UsageError, match=r"the name 'unet' is taken by \S*nets.py:UNet\(1\)\nhint: give it another name"
    ):
        with_models(matrix(), Options(model=[f"{path}:UNet(1)", f"{path}:UNet(2)"], input=["1x3"]))
    _, selected = with_models(matrix(), Options(model=[f"{path}:UNet(1)", f"unet-2={path}:UNet(2)"], input=["1x3"]))
    assert selected == ["unet", "unet-2"]


def test_an_input_that_no_network_takes_is_refused(tmp_path: Path) -> None:
    for models in (None, [str(write_model(tmp_path))]):
        with pytest.raises(UsageError, match="no --model names a class or a function\nhint: "):
            with_models(matrix(), Options(model=models, input=["1x3"]))


def test_a_class_whose_framework_no_environment_has_is_an_error(tmp_path: Path) -> None:
    path = write_model(tmp_path, NETS, "nets.py")
    extended, selected = with_models(matrix(), Options(model=[f"{path}:UNet"], input=["1x3"]))
    request = Request(environments=("np",), workloads=tuple(selected or ()))
    expected = "nets.py:UNet needs torch, and no selected environment has that framework\nhint: select an environment"
    with pytest.raises(NothingSelectedError, match=expected):
        network_notes(extended, request)


def test_a_keras_model_is_not_missed_where_tensorflow_measures_it(tmp_path: Path) -> None:
    path = write_model(tmp_path, "import keras\ndef network(): ...\n", "nets.py")
    extended, selected = with_models(matrix(), Options(model=[f"{path}:network"], input=["1x3"]))
    assert network_notes(extended, Request(environments=("tf-1.8",), workloads=tuple(selected or ()))) == []


def test_frameworks_that_no_environment_has_are_a_note_or_an_error(tmp_path: Path) -> None:
    extended, selected = with_models(matrix(), Options(model=[str(write_model(tmp_path))]))
    request = Request(environments=("np", "tf-1.8"), workloads=tuple(selected or ()))
    note = "my_network.py: TorchModel is not measured: no selected environment has torch"
    assert network_notes(extended, request) == [note]
    with pytest.raises(NothingSelectedError, match="defines TorchModel, NumpyModel, and no selected environment"):
        network_notes(extended, replace(request, environments=("tf-1.8",)))


def test_the_networks_of_a_stored_plan_can_be_planned_again(tmp_path: Path) -> None:
    extended, _ = with_models(matrix(), Options(model=[str(write_model(tmp_path))]))
    request = Request(environments=("np",), workloads=("my-network",))
    stored = replace(plan(extended, request, {}), past=Past())
    again = plan(with_stored_networks(matrix(), stored), request, {})
    assert {block.case_id: block.spec for block in again.blocks if "small" in block.case_id} == {
        block.case_id: block.spec for block in stored.blocks if "small" in block.case_id
    }
    assert again.models == stored.models
