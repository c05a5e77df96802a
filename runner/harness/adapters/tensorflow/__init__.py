"""TensorFlow: graphs and sessions in 1.x (``tensorflow1``), traced functions in 2.x (``tensorflow2``).

Weights lie as TensorFlow's own cells keep them, or as cuDNN does: see ``tensorflow_layouts``. Losses and clipping are
the same operations in both: see ``tensorflow_losses``.

The optimisers are what users of each version take: ``tf.train`` in 1.x (one kernel for each variable's update), Keras
in 2.x (several operations). Their Adam adds its epsilon to the square root of the uncorrected second moment ("epsilon
hat" at the end of section 2 in Kingma and Ba 2015), the reference to that of the corrected one: the same 1e-8 is 32
times as much in the first step, and shows in the losses (1.3e-4 on 1x320-ce-short). EPSILON is what equals 1e-8 in the
first step; later ones move by less than single precision would show.
"""

import logging
import os
import warnings

from ...verify import reference
from ...cases import repeats
from .v1 import engine as tensorflow1
from . import layouts
from . import published
from ..base import Implementation
from .installed import SETTINGS, engines
from .kernels import Conv2d, CooMatmul, DenseMatmul, Matmul

FRAMEWORK = "tensorflow"
FORK_AFTER_IMPORT = True  # no session and no eager context before the fork; 1.8, 1.15 and 2.21 then survive it

EPSILON = reference.ADAM["epsilon"] * (1 - reference.ADAM["beta2"]) ** 0.5


def load(threads: "int") -> "str":
    """Import TensorFlow with all that its children need, and keep the thread count for them; returns the version."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ["KERAS_BACKEND"] = "tensorflow"
    SETTINGS["threads"] = threads
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the 1.x wheels trip over NumPy's new words about dtypes
        import tensorflow

        logging.getLogger("tensorflow").setLevel(logging.ERROR)
        engines().load(threads)
    return tensorflow.__version__


def facts(device: "str") -> "dict":
    """Return the version, what it was built for, its threads and optimiser, and on cuda the name of the GPU."""
    import tensorflow

    threads = SETTINGS["threads"]
    found = {"version": tensorflow.__version__, "adam_epsilon_hat": EPSILON}
    found.update(intra_op_threads=threads, inter_op_threads=tensorflow1.INTER_OP_THREADS)
    found.update(engines().facts(device, threads))
    return found


class Recurrent(Implementation):
    """What all share: convert, and let the engine of the installed version do the work."""

    layout = "cells"
    compile_seconds = (0.3, 0.3)  # nothing is kept on disk; 1.8, 1.15 and 2.21 alike

    @classmethod
    def lacks(cls, case, release, device, precision):
        """See Implementation; also, TF32 came with 2.4, resettable optimisers with 2.11."""
        found = super(Recurrent, cls).lacks(case, release, device, precision)
        if found is None and case.get("protocol") == "published" and release >= (2,) and not repeats(case):
            return "framework-lacks", "the original programs are of TensorFlow 1.x: there is none for 2.x"
        if found is None and (2,) <= release < (2, 11):
            return "framework-lacks", "Keras optimisers cannot be put back to their start before TensorFlow 2.11"
        if found is None and precision == "tf32" and release < (2, 4):
            return "precision-lacks", "TensorFlow chooses tf32 since 2.4"
        return found

    @classmethod
    def original(cls, case, data, weights, device, precision):
        """See Implementation."""
        return published.PROGRAMS[case["workload"]](cls.slug, case, data, dict(SETTINGS, device=device))

    def __init__(self, case, data, weights, device, precision):
        """See Implementation."""
        self.case = case
        arrays = layouts.convert(case, weights, self.layout)
        rows = layouts.rows(case, self.layout)
        settings = dict(SETTINGS, device=device, precision=precision, epsilon=EPSILON, rows=rows)
        engine = engines().Engine(self.slug, case, self.held(data), arrays, settings)
        self.reset, self.forward, self.backward, self.train = engine.reset, engine.forward, engine.backward, engine.train
        self.outputs, self.loss, self.synchronize = engine.outputs, engine.loss, engine.synchronize
        self.peak_bytes, self.engine = engine.peak_bytes, engine

    def held(self, data):
        """Return the arrays that stay on the device and are never trained.

        Words, and labels but those of CTC, are int64: GPUs hold these, and no int32.
        """
        wide = {"ce": ("target",), "lm": ("x", "target")}.get(self.case["loss"], ())
        return {name: array.astype("int64") if name in wide else array for name, array in data.items()}

    def gradients(self):
        """See Implementation."""
        return layouts.revert(self.case, self.engine.gradients(), self.layout)


class BasicLSTMCell(Recurrent):
    """``nn.rnn_cell.BasicLSTMCell`` in ``nn.dynamic_rnn``; in 2.x the same operations in a ``tf.while_loop``."""

    slug = "basic-lstm-cell"
    kind = "flexible"
    originals = ("rnn-step", "lm-lstm")


class LSTMCell(Recurrent):
    """``nn.rnn_cell.LSTMCell`` in ``nn.dynamic_rnn``: without peepholes and projection, the basic cell again."""

    slug = "lstm-cell"
    kind = "flexible"
    originals = ("asr-lstm",)
    before = (2,)

    @classmethod
    def lacks(cls, case, release, device, precision):
        """See Implementation; says where the cell went."""
        found = super(LSTMCell, cls).lacks(case, release, device, precision)
        if release >= cls.before and case["cell"] in cls.cells:
            reason = "lstm-cell went with 2: Keras 3 leaves rnn_cell.LSTMCell out; basic-lstm-cell computes the same"
            return "framework-lacks", reason
        return found


class LSTMBlockCell(Recurrent):
    """``contrib.rnn.LSTMBlockCell`` in ``nn.dynamic_rnn``; in 2.x its operation in a ``tf.while_loop``."""

    slug = "lstm-block-cell"
    kind = "fused"
    originals = ("asr-lstm", "lm-lstm")


class LSTMBlockFusedCell(Recurrent):
    """``contrib.rnn.LSTMBlockFusedCell``: one operation for all steps; in 2.x that operation, ``BlockLSTM``."""

    slug = "lstm-block-fused-cell"
    kind = "fused"
    originals = ("asr-lstm",)
    compile_seconds = (0.1, 0.1)


class CudnnLSTM(Recurrent):
    """``contrib.cudnn_rnn``, the operation rather than the layer; in 2.x ``CudnnRNNV3``.

    cuDNN has two biases where the reference has one: the second is zero and its gradient is masked.
    """

    slug = "cudnn-lstm"
    kind = "vendor"
    originals = ("asr-lstm", "deepbench-rnn")
    devices = ("cuda",)
    layout = "cudnn"
    compile_seconds = (1.0, 1.0)  # not measured

    @classmethod
    def lacks(cls, case, release, device, precision):
        """See Recurrent; ``contrib``'s operation has no argument for lengths in 1.8, and one in 1.15."""
        found = super(CudnnLSTM, cls).lacks(case, release, device, precision)
        if found is None and case["ragged"] and release < (1, 15):
            return "framework-lacks", "cudnn-lstm takes no lengths before TensorFlow 1.15"
        return found

    def held(self, data):
        """See Recurrent; and the mask of the buffer's gradient."""
        import numpy

        blocks = layouts.rows(self.case, self.layout)["params"]
        trained = [numpy.full(rows, canonical is not None, numpy.float32) for canonical, rows in blocks]
        return dict(Recurrent.held(self, data), mask=numpy.concatenate(trained))


class BasicRNNCell(Recurrent):
    """``nn.rnn_cell.BasicRNNCell`` in ``nn.dynamic_rnn``; in 2.x the same operations in a ``tf.while_loop``."""

    slug = "basic-rnn-cell"
    kind = "flexible"
    originals = ("rnn-step",)
    cells = ("rnn", "relu")


class GRUCell(Recurrent):
    """``contrib.cudnn_rnn.CudnnCompatibleGRUCell`` in ``nn.dynamic_rnn``; in 2.x its operations in a ``tf.while_loop``.

    ``nn.rnn_cell.GRUCell`` and ``GRUBlockCell`` multiply by the reset gate before the product, which is another
    function. The second bias of the cell that multiplies behind it is zero and not trained; 2.x leaves it out.
    """

    slug = "gru-cell"
    kind = "flexible"
    cells = ("gru",)


IMPLEMENTATIONS = (
    BasicLSTMCell,
    LSTMCell,
    LSTMBlockCell,
    LSTMBlockFusedCell,
    CudnnLSTM,
    BasicRNNCell,
    GRUCell,
    Matmul,
    Conv2d,
    CooMatmul,
    DenseMatmul,
)
