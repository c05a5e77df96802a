"""What a case is taken from: the fields that DeepBench's tables are ordered by, and those of the networks."""

from collections.abc import Mapping
from typing import Any

FIELDS: Mapping[str, tuple[str, ...]] = {
    "Speech": ("deepspeech", "deep speech", "speaker id", "kws", "asr-lstm"),
    "Language": ("language modelling", "character language modelling", "machine translation", "lm-lstm"),
    "Vision": ("vision", "resnet", "face recognition", "ocr"),
    "Recurrent layers": ("rnn-step", "rnn-sequence"),
    "General": ("general", ""),
}
"""Field -> DeepBench's applications (of its two spreadsheets of kernels) and our workloads, in lower case."""

_FIELD = {name: field for field, names in FIELDS.items() for name in names}


def field(case: Mapping[str, Any]) -> str:
    """Return the field of a case, one of ``FIELDS``; of several applications the first counts, and General of none."""
    of = case.get("application", case["workload"])
    return _FIELD.get(of.partition(",")[0].strip().lower(), "General")
