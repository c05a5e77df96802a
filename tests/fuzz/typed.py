"""The generators of the targets ``model`` and ``typed``: model files, and the words of the command line."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from tests.fuzz.draws import Draws
from tests.fuzz.edits import draw_bytes
from tests.fuzz.models import model_files
from tests.fuzz.values import TEXTS

PYTHON_TOKENS = tuple(
    text.encode("utf-8", "surrogateescape")
    for text in (
        *("(", ")", "[", "]", "{", "}", ":", ",", "=", "*", "**", "@", "#", "\\", "\t", "\n    ", "\r", "\0", "\x0c"),
        *("\n", "\ufeff", "# coding: latin-1\n", "# coding: x\n", "é = 1\n", "\udcff", "'", '"""', "f'{", "1e999"),
        *("class TorchModel:\n    pass\n", "class JaxModel(TorchModel, JaxModel): pass\n", "def forward(self): ...\n"),
        *("CASES = {}\n", "CASES = dict(a=1)\n", "CASES = {'a': {'b': 1e999}}\n", "CASES: dict = {**{}, 1: 2}\n"),
        *("CASES['x'] = {'n': -5}\n", "TOLERANCE = {'fp32': float('nan')}\n", "random = None\n", "del CASES\n"),
        *(
            "import x.y as z\n",
            "from . import a\n",
            "from ...b import *\n",
            "from __future__ import x\n",
            "import os, sys\n",
        ),
        *("try:\n    import jax\nexcept ImportError:\n    jax = None\n", "if True:\n    import torch\n", "match x:\n"),
        *(
            "async def forward(self): pass\n",
            "lambda self: 0",
            "def build(a, /, b, *, c, d=1, **e): pass\n",
            "x: int\n",
        ),
        *("[" * 80, "(" * 150, "-" * 900, "9" * 5000, "0x" + "f" * 4000, "x." * 2000, "if x:\n " * 90, "@a\n" * 200),
    )
)


class Words(NamedTuple):
    """What is typed for an option: words that are right where they stand alone, and wrong ones."""

    right: Sequence[str]
    wrong: Sequence[str]


MODELS = Words(
    (
        *("nets.py:UNet", "nets.py:UNet(3, bilinear=True)", "nets.py:build", "small", "small/model.py"),
        *("timm:resnet18", "torchvision:segmentation.fcn_resnet50", "hf:config.json", "a=nets.py:UNet"),
        "keras:applications.MobileNet",
    ),
    (
        *("nets.py:Tagger", "nets.py", "hf:.", "a=b=nets.py:UNet", "nets.py:UNet(", "nets.py:UNet(x)", "nets.py:"),
        *("nets.py:UNet(**{'a': 1})", "nets.py:UNet(1e999)", "nets.py:UNet([[1], {2: 'x'}])", "tinm:resnet18"),
        "nets:UNet",
    ),
)
INPUTS = Words(
    ("1x3x64x64", "8x128:int64<1000", "2:bool", "1x3x8x8:float32", "x".join(["1"] * 300)),
    ("0x1", "1x", "x", "1x2:float99", "1:int64<0", "1:uint8<99999999999", "1:float32<5", "\uff19x9", "2147483649"),
)
SELECTORS = Words(
    (
        *("torch-2.x", "torch-*", "torch>=1.0,<2", "framework:tf", "!torch-1.0", "*/nn-lstm/*", "torch-2.x@env:A=1"),
        *("torch-2.x@env:A=1@env:B=", "torch-2.x@env:A=1/nn-lstm/rnn-step/*/forward/fp32", "torch-1.0@env:A=1"),
        *("torch==2.9.1", "numpy==1.26.4@py3.11", "tf==2.18.0@env:A=1", "torch==1.0", "!jax==0.8.1"),
        *("torch==2.9.1,numpy==1.26.4/nn-lstm/*", "torch==2.9.1+cu126,a_b.c==1.0rc1@py3.11@env:A=1", "!torch==2.9.1"),
        *("python:python3", "mine=python:python3@env:A=1", "python:/usr/bin/env/nn-lstm/*", "!mine=python:python3"),
        *("image:team/net:2", "net=image:h.example:5000/a/b:c@threads:2", "image:a@sha256:" + "0" * 64, "image:net"),
    ),
    (
        *("torch-2.x@env:A=1@env:A=2", "torch-*@env:A=1", "torch-2.x@env:", "torch-2.x@env:=1", "torch-2.x@threads:2"),
        *("torch-2.x@env:LD_PRELOAD=/x", "@env:A=1", "torch-2.x@", "torch-2.x@plain", "**", "[", "a/b", "torch==2.9"),
        *("torch==2.9@env:A=1", "torch>", "!", "!*", "torch@nightly-20261101", "torch@nightly-99999999@py3.11"),
        *("python:", "python:.", "python:/nonexistent/python", "image:", "image:A B", "=image:a", "A=image:a"),
        *("python:" + "../" * 900, "image:" + "a/" * 900, "python:~nobody/x", "image:a:" + "9" * 300),
        *("mine=image:a", "a=b=image:c"),
        *("torch==" + "9" * 5000, "torch==2.9.1,Torch==2.8", "torch==2.9.1,a-==1", "torch==1!2", "torch==9.9"),
        *("torch==2.9.1@py3.99", "torch==2.9.1," + "x" * 60 + "==1", "torch==" + "1." * 29 + "1", "torch==1.0,a==1..2"),
    ),
)
VARIABLES = Words(
    ("A=1", "A=", "OMP_NUM_THREADS=2", "XLA_FLAGS=--a --b=c"),
    ("=1", "A", "A=1,B=2", "PATH=/x", "OMP_NUM_THREADS=x", "A=\n", "a b=1", "A=" + "x" * 70_000, "\xe9=1"),
)
THREADS = Words(("1", "1,2,4"), ("1,1", "0", "", ",", "x", "1,", "-1", "9" * 30, "\u0663", "1.5", " 1"))
MARKS = ":=@()[]{}/.,x<*!'\"\\ \n\0\xe91-"


def model(draws: Draws) -> bytes:
    """Return the bytes of a model file with a few changes."""
    return draw_bytes(draws, draws.pick(model_files()), PYTHON_TOKENS)


def typed(draws: Draws) -> dict[str, Any]:
    """Return the values of options that choose networks and environments; what is not there was not typed."""
    value: dict[str, Any] = {}
    if draws.chance(3, 4):
        value |= {"model": _several(draws, MODELS), "input": _several(draws, INPUTS)}
    if draws.chance(3, 4):
        value["selectors"] = _several(draws, SELECTORS)
    if draws.chance(1, 4):
        value["env"] = _several(draws, VARIABLES)
    if draws.chance(1, 6):
        value["threads"] = _word(draws, THREADS)
    if draws.chance(1, 6):
        value["holds"] = [draws.pick((right, draws.pick(TEXTS))) for right in ("torch", "2.9.1", "3.11")]
    return value


def _several(draws: Draws, words: Words) -> list[str]:
    return [_word(draws, words) for _ in range(draws.pick((1, 1, 1, 2)))]


def _word(draws: Draws, words: Words) -> str:
    """Return a right word, four times of five; else one that is wrong, nearly right, or hostile."""
    kind = draws.below(20)
    if kind < 16:
        return draws.pick(words.right)
    if kind == 16:
        return draws.pick(TEXTS)
    if kind == 17:
        return draws.pick(words.wrong)
    word: str = draws.pick((*words.right, *words.wrong))
    start = draws.below(len(word) + 1)
    end = min(len(word), start + draws.below(3))
    part: str = draws.pick((*MARKS, "", draws.pick(words.right)))
    return word[:start] + part + word[end:]
