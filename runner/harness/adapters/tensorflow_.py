"""TensorFlow: graphs and sessions in 1.x (``tensorflow1``), traced functions in 2.x (``tensorflow2``).

The recurrent weights lie as TensorFlow's own cells keep them: one ``kernel`` (I+H, G*H), the rows of x above those of
h, and one ``bias`` (G*H,), gates in the order i, g (its documents say j or ci), f, o. The cells add the forget bias
themselves in every step, so it is taken off the stored bias. cuDNN has one flat buffer instead, without a forget bias.

The optimisers are what users of each version take: ``tf.train`` in 1.x (one kernel for each variable's update), Keras
in 2.x (several operations). Their Adam adds its epsilon to the square root of the uncorrected second moment ("epsilon
hat" at the end of section 2 in Kingma and Ba 2015), the reference to that of the corrected one: the same 1e-8 is 32
times as much in the first step, and shows in the losses (1.3e-4 on 1x320-ce-short). EPSILON is what equals 1e-8 in the
first step; later ones move by less than single precision would show.
"""

import logging
import os
import warnings

from .. import reference
from . import tensorflow1, tensorflow2
from .api import Implementation, gates

FRAMEWORK = "tensorflow"
FORK_AFTER_IMPORT = True  # no session and no eager context before the fork; 1.8, 1.15 and 2.21 then survive it

SETTINGS = {"threads": 1}
EPSILON = reference.ADAM["epsilon"] * (1 - reference.ADAM["beta2"]) ** 0.5


def engines() -> "object":
    """Return the module that drives the TensorFlow that is installed."""
    import tensorflow

    return tensorflow1 if hasattr(tensorflow, "Session") else tensorflow2


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


def convert(case: "dict", weights: "dict", layout: "str") -> "dict":
    """Return canonical weights as TensorFlow keeps them: ``kernel`` and ``bias``, or ``params``; ``output`` if any.

    Args:
        case: the sizes and the forget bias.
        weights: canonical arrays by name.
        layout: the order of the gates in the kernel, or ``cudnn``: one flat buffer of eight transposed matrices (of x,
            then of h) and eight biases, each in the order i, f, g, o, the second four biases zero.
    """
    import numpy

    kernel, recurrent, bias = (weights["layer0/" + name] for name in ("kernel", "recurrent", "bias"))
    found = {"output": weights["output/kernel"]} if case["classes"] else {}
    if layout == "cudnn":
        found["params"] = numpy.concatenate([kernel.T.ravel(), recurrent.T.ravel(), bias, numpy.zeros_like(bias)])
        return found
    if case["cell"] == "lstm":
        bias = bias.copy()
        bias[case["hidden"] : 2 * case["hidden"]] -= numpy.float32(case["forget_bias"])
    found["kernel"] = gates(numpy.concatenate([kernel, recurrent]), layout)
    found["bias"] = gates(bias, layout)
    return found


def revert(case: "dict", arrays: "dict", layout: "str") -> "dict":
    """Return gradients, laid out as ``convert`` lays out weights, by canonical name."""
    inputs, hidden = case["inputs"], case["hidden"]
    found = {"output/kernel": arrays["output"]} if case["classes"] else {}
    if layout == "cudnn":
        width, params = 4 * hidden, arrays["params"]
        ends = (width * inputs, width * (inputs + hidden), width * (inputs + hidden + 1))
        found["layer0/kernel"] = params[: ends[0]].reshape(width, inputs).T
        found["layer0/recurrent"] = params[ends[0] : ends[1]].reshape(width, hidden).T
        found["layer0/bias"] = params[ends[1] : ends[2]]
        return found
    kernel = gates(arrays["kernel"], "ifgo", layout)
    found["layer0/kernel"], found["layer0/recurrent"] = kernel[:inputs], kernel[inputs:]
    found["layer0/bias"] = gates(arrays["bias"], "ifgo", layout)
    return found


class Recurrent(Implementation):
    """What all share: convert, and let the engine of the installed version do the work."""

    layout = "igfo"

    @classmethod
    def lacks(cls, case, release, device, precision):
        """See Implementation; also, TF32 came with 2.4, resettable optimisers with 2.11."""
        found = super(Recurrent, cls).lacks(case, release, device, precision)
        if found is None and (2,) <= release < (2, 11):
            return "framework-lacks", "Keras optimisers cannot be put back to their start before TensorFlow 2.11"
        if found is None and precision == "tf32" and release < (2, 4):
            return "precision-lacks", "TensorFlow chooses tf32 since 2.4"
        return found

    def __init__(self, case, data, weights, device, precision):
        """See Implementation."""
        self.case = case
        self.arrays = convert(case, weights, self.layout)
        settings = dict(SETTINGS, device=device, precision=precision, epsilon=EPSILON)
        engine = engines().Engine(self.slug, case, self.held(data), self.arrays, settings)
        self.reset, self.forward, self.train = engine.reset, engine.forward, engine.train
        self.outputs, self.loss, self.synchronize = engine.outputs, engine.loss, engine.synchronize
        self.engine = engine

    def held(self, data):
        """Return the arrays that stay on the device and are never trained; labels as int64, which GPUs hold too."""
        target = data["target"].astype("int64") if self.case["loss"] == "ce" else data["target"]
        return {"x": data["x"], "target": target}

    def gradients(self):
        """See Implementation."""
        return revert(self.case, self.engine.gradients(), self.layout)


class BasicLSTMCell(Recurrent):
    """``nn.rnn_cell.BasicLSTMCell`` in ``nn.dynamic_rnn``; in 2.x the same operations in a ``tf.while_loop``."""

    slug = "basic-lstm-cell"
    kind = "flexible"


class LSTMCell(Recurrent):
    """``nn.rnn_cell.LSTMCell`` in ``nn.dynamic_rnn``: without peepholes and projection, the basic cell again."""

    slug = "lstm-cell"
    kind = "flexible"
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


class LSTMBlockFusedCell(Recurrent):
    """``contrib.rnn.LSTMBlockFusedCell``: one operation for all steps; in 2.x that operation, ``BlockLSTM``."""

    slug = "lstm-block-fused-cell"
    kind = "fused"


class CudnnLSTM(Recurrent):
    """``contrib.cudnn_rnn``, the operation rather than the layer; in 2.x ``CudnnRNNV3``.

    cuDNN has two biases where the reference has one: the second is zero and its gradient is masked.
    """

    slug = "cudnn-lstm"
    kind = "vendor"
    devices = ("cuda",)
    layout = "cudnn"

    def held(self, data):
        """See Recurrent; and the mask of the buffer's gradient."""
        mask = self.arrays["params"] * 0 + 1
        mask[-4 * self.case["hidden"] :] = 0
        return dict(Recurrent.held(self, data), mask=mask)


class BasicRNNCell(Recurrent):
    """``nn.rnn_cell.BasicRNNCell`` (tanh) in ``nn.dynamic_rnn``; in 2.x the same operations in a ``tf.while_loop``."""

    slug = "basic-rnn-cell"
    kind = "flexible"
    cells = ("rnn",)
    layout = "ifgo"  # one gate: nothing is reordered


IMPLEMENTATIONS = (BasicLSTMCell, LSTMCell, LSTMBlockCell, LSTMBlockFusedCell, CudnnLSTM, BasicRNNCell)
