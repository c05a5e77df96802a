"""lm-lstm: the language models whose speed the TFCudnnLSTM template quotes, and the small network of the template.

``ptb-large`` is the large model of TensorFlow's PTB tutorial: 2 layers of 1500 units, 35 steps, batch 20, 10,000 words,
SGD with rate 1, gradients clipped to the global norm 10. ``words-35k`` is PyTorch's word_language_model with a softmax
over 35,000 words, rate 20 and global norm 0.25. It is another computation, so its words/s do not compare with those of
``ptb-large``. The template has two layers of 64 units, in one direction or both, on ten steps of two numbers, and
classifies the mean over time with Adam; each gradient is clipped to +-5 and then to the norm 100. ``lm-small`` takes
seconds; it was never published.

Aligned choices: the loss is a mean over steps and batch (the tutorial sums over steps), no dropout, forget bias 0 as
in the tutorial, the output layer of the template is trained (the original left it out). Words are drawn at random.
"""

from collections.abc import Mapping
from typing import Any

from runner.catalog.cases.recurrent import case


def _words(name: str, hidden: int, words: int, rate: float, norm: float, **settings: object) -> Mapping[str, Any]:
    return case(
        **{
            "workload": "lm-lstm",
            "name": name,
            "layers": 2,
            "steps": 35,
            "batch": 20,
            "inputs": hidden,
            "hidden": hidden,
            "classes": words,
            "vocabulary": words,
            "output_bias": True,
            "forget_bias": 0.0,
            "carry": True,
            "loss": "lm",
            "optimizer": "sgd",
            "rate": rate,
            "clip_norm": norm,
            **settings,
        }
    )


def _template(name: str, **settings: object) -> Mapping[str, Any]:
    return case(
        workload="lm-lstm",
        name=name,
        layers=2,
        steps=10,
        batch=64,
        inputs=2,
        hidden=64,
        classes=1,
        output_bias=True,
        loss="bce",
        optimizer="adam",
        rate=1e-3,
        clip_value=5.0,
        clip_each=100.0,
        **settings,
    )


CASES = (
    _words("ptb-large", 1500, 10_000, 1.0, 10.0),
    _words("words-35k", 1500, 35_000, 20.0, 0.25),
    _template("template-2x64"),
    _template("template-2x64-bidirectional", bidirectional=True),
    _words("lm-small", 64, 500, 1.0, 0.1, steps=20, batch=16),
)
PUBLISHED = {
    "ptb-large": ("basic-lstm-cell", "lstm-block-cell", "cudnn-lstm"),
    "words-35k": ("nn-lstm", "cudnn-lstm"),
    "template-2x64": ("cudnn-lstm",),
    "template-2x64-bidirectional": ("cudnn-lstm",),
}
ORIGINAL_PHASES = ("train",)
FIELD = "Language"


def unit(case: Mapping[str, Any]) -> str:
    """Return the unit of a case: ``words/s``, as in TensorFlow's PTB tutorial, or ``ms/batch`` without a vocabulary."""
    return "words/s" if case["vocabulary"] else "ms/batch"
