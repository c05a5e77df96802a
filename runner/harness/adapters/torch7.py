"""Torch7: declared for its published figures. Its programs are in Lua, and this harness runs Python."""

from .base import Implementation

FRAMEWORK = "torch7"
FORK_AFTER_IMPORT = True


def load(threads: "int") -> "str":
    """Raise ImportError: there is no module that Python could import."""
    raise ImportError("programs of Torch7 are written in Lua, and this harness runs Python")


class SeqLSTM(Implementation):
    """``SeqLSTM`` of Element-Research's ``rnn``: one module for all steps.

    No image of Torch7 can run this harness, whichever image the engine has. So every backend skips it with
    ``image-unavailable``.
    """

    slug = "seq-lstm"
    kind = "fused"

    @classmethod
    def lacks(cls, case: "dict", release: "tuple", device: "str", precision: "str") -> "tuple":
        """See Implementation; nothing of Torch7 can run here, and only ``rnn-step`` has published figures of it."""
        if case["workload"] != "rnn-step":
            return "framework-lacks", "Torch7 has published figures for rnn-step only"
        reason = "Torch7 cannot be measured: its programs are in Lua, and this harness runs Python; compare its "
        return "image-unavailable", reason + "published figures instead"


class SeqRNN(SeqLSTM):
    """``Recurrence`` around a linear layer and a sigmoid, in a ``Sequencer``: the plain RNN that was published."""

    slug = "seq-rnn"
    kind = "flexible"
    cells = ("rnn",)


IMPLEMENTATIONS = (SeqLSTM, SeqRNN)
