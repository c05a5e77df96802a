"""What ``--model`` may name, the workload that it becomes, and what is no name."""

import string
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.core.errors import UsageError
from runner.matrix.wrapper.named_model import Call, parse_model

FORMS = {
    "my_network.py": (Path("my_network.py"), "", "", None),
    "models/encoder": (Path("models/encoder"), "", "", None),
    "nets.py:UNet": (Path("nets.py"), "", "UNet", None),
    "a.py/nets.py:UNet()": (Path("a.py/nets.py"), "", "UNet", Call("", 0, ())),
    "nets.py:UNet( 3,widths = [1, -2], name='a:(b' )": (
        Path("nets.py"),
        "",
        "UNet",
        Call("3, widths=[1, -2], name='a:(b'", 1, ("widths", "name")),
    ),
    "timm:vit_small_patch16_224.augreg_in21k": (None, "timm", "vit_small_patch16_224.augreg_in21k", None),
    "torchvision:segmentation.fcn_resnet50(weights_backbone=None)": (
        None,
        "torchvision",
        "segmentation.fcn_resnet50",
        Call("weights_backbone=None", 0, ("weights_backbone",)),
    ),
    "keras:applications.MobileNetV2": (None, "keras", "applications.MobileNetV2", None),
    "hf:tiny/config.json": (Path("tiny/config.json"), "hf", "tiny/config.json", None),
}


@pytest.mark.parametrize("text", FORMS)
def test_a_file_a_name_of_a_file_and_a_name_of_a_library_are_told_apart(text: str) -> None:
    model = parse_model(text)
    assert (model.path, model.library, model.name, model.call) == FORMS[text]
    assert model.is_wrapped == (model.name != "")


def test_a_file_that_exists_is_a_file_whatever_its_name_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("timm:resnet18", "mine=nets.py"):
        Path(name).touch()
        assert parse_model(name).path == Path(name)


WORKLOADS = {
    "My_Network.py": "my-network",
    "nets.py:UNet": "unet",
    "nets.py:_Encoder_2D(3)": "encoder-2d",
    "timm:vit_small_patch16_224.augreg_in21k": "vit-small-patch16-224-augreg-in21k",
    f"timm:{'resnet_' * 9}": "resnet-resnet-resnet-resnet-resnet-resne",
    "keras:applications.MobileNetV2": "mobilenetv2",
    "torchvision:resnet18": "resnet18",
    "hf:tiny-GPT2/config.json": "tiny-gpt2",
    "hf:tiny.json": "tiny",
    "mine=My_Network.py": "mine",
    "small-2=nets.py:UNet(8)": "small-2",
}


@pytest.mark.parametrize("text", WORKLOADS)
def test_a_workload_is_named_after_what_it_measures(text: str) -> None:
    assert parse_model(text).workload == WORKLOADS[text]


def test_a_name_that_no_workload_can_have_is_refused() -> None:
    with pytest.raises(UsageError, match="'_2d' cannot name a workload"):
        parse_model("nets.py:_2d").workload  # noqa: B018


PLAIN = "the arguments have to be plain values"
MISTAKES = {
    "nets:UNet": "there is no file nets:UNet\nhint: write FILE.py:NAME for a class or a function of a file, or one of",
    "layers:Block": "hint: did you mean layers.py:Block?",
    "tim:resnet18": "hint: did you mean timm:resnet18?",
    "torchvision:resnet-18": "there is no file torchvision:resnet-18",
    "nets.py:": "there is no file nets.py:",
    "nets.py:Outer.Inner": "there is no file nets.py:Outer.Inner",
    "hf:config.json\0": "there is no file hf:config.json",
    "hf:config.jso\0n": "there is no file hf:config.jso",
    "nets.py:UNet(width)": PLAIN,
    "nets.py:UNet(3": "there is no file nets.py:UNet(3",
    "nets.py:UNet(3)(4)": PLAIN,
    "nets.py:UNet(**{'a': 1})": PLAIN,
    "nets.py:UNet(*[1])": PLAIN,
    "nets.py:UNet(open('x'))": PLAIN,
    f"nets.py:UNet({'-' * 100_000}1)": PLAIN,
}


@pytest.mark.parametrize("text", MISTAKES, ids=lambda text: text[:40])
def test_what_is_no_name_has_a_sentence_and_a_hint(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("layers.py").touch()
    with pytest.raises(UsageError) as caught:
        parse_model(text)
    assert MISTAKES[text] in str(caught.value)
    assert "\nhint: " in str(caught.value)


@given(st.text(string.printable + "é\0", max_size=60))
def test_whatever_is_typed_is_a_name_or_a_mistake(text: str) -> None:
    for typed in (text, f"nets.py:{text}", f"nets.py:Net({text})", f"timm:{text}"):
        with suppress(UsageError):
            assert typed.endswith(parse_model(typed).text)
