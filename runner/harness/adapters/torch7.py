"""Torch7: declared for its published figures. It is programmed in Lua, and this harness drives Python."""

from .base import Implementation

FRAMEWORK = "torch7"
FORK_AFTER_IMPORT = True


def load(threads: "int") -> "str":
    """Raise ImportError: there is nothing that Python could import."""
    raise ImportError("Torch7 is programmed in Lua, and this harness drives Python")


class SeqLSTM(Implementation):
    """``SeqLSTM`` of Element-Research's ``rnn``: one module for all steps.

    What is missing is neither the module nor a line in matrix.yaml, but an image in which Python can reach it. So the
    plan says ``image-unavailable``, on every backend and whatever image is on the engine: bringing one does not help.
    """

    slug = "seq-lstm"
    kind = "fused"

    @classmethod
    def lacks(cls, case: "dict", release: "tuple", device: "str", precision: "str") -> "tuple":
        """See Implementation; nothing of this can run here, and only ``rnn-step`` has been published of it."""
        if case["workload"] != "rnn-step":
            return "framework-lacks", "Torch7 is declared for rnn-step alone, where it has published figures"
        reason = "no image of Torch7 can be measured: it is programmed in Lua, and this harness drives Python; "
        return "image-unavailable", reason + "its published figures stand for it"


class SeqRNN(SeqLSTM):
    """``Recurrence`` around a linear layer and a sigmoid, in a ``Sequencer``: the plain RNN that was published."""

    slug = "seq-rnn"
    kind = "flexible"
    cells = ("rnn",)


IMPLEMENTATIONS = (SeqLSTM, SeqRNN)
