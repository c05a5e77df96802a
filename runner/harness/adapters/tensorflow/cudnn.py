"""TensorFlow's networks of cuDNN: all layers, directions and steps are one operation on a flat buffer of weights."""

from .recurrent import Recurrent
from .v1 import networks as v1_networks
from .v2 import networks as v2_networks


class Cudnn(Recurrent):
    """``contrib.cudnn_rnn``, the operation rather than the layer; in 2.x ``CudnnRNNV3``.

    cuDNN has two biases where the reference has one. The second starts at zero and is put back to zero after each
    update, which touches the biases alone; it takes no part in the norm by which gradients are clipped.
    """

    kind = "vendor"
    uses_cudnn = True
    originals = ("deepbench-rnn",)
    devices = ("cuda",)
    layout = "cudnn"
    compile_seconds = (1.0, 1.0)  # not measured
    operations = {}  # cell -> class of ``contrib.cudnn_rnn``

    @classmethod
    def lacks(cls, case, release, device, precision):
        """See Recurrent; also, the operation in ``contrib`` takes lengths from 1.15 on."""
        skip = super(Cudnn, cls).lacks(case, release, device, precision)
        if skip is None and case["ragged"] and release < (1, 15):
            return "framework-lacks", "{} takes no lengths before TensorFlow 1.15".format(cls.slug)
        return skip

    @classmethod
    def network_v1(cls, case, arrays):
        from tensorflow.contrib.cudnn_rnn.python.ops import cudnn_rnn_ops

        operation = getattr(cudnn_rnn_ops, cls.operations[case["cell"]])
        return v1_networks.Cudnn(case, operation, arrays["params"].size)

    @classmethod
    def network_v2(cls, case):
        return v2_networks.Cudnn(case)


class CudnnLSTM(Cudnn):
    """``contrib.cudnn_rnn.CudnnLSTM``'s operation."""

    slug = "cudnn-lstm"
    originals = ("asr-lstm", "deepbench-rnn")
    operations = {"lstm": "CudnnLSTM"}


class CudnnGRU(Cudnn):
    """``contrib.cudnn_rnn.CudnnGRU``'s operation: the reset gate acts on the product, as the canonical one does."""

    slug = "cudnn-gru"
    cells = ("gru",)
    operations = {"gru": "CudnnGRU"}


class CudnnRNN(Cudnn):
    """The operations of ``contrib.cudnn_rnn.CudnnRNNTanh`` and ``CudnnRNNRelu``."""

    slug = "cudnn-rnn"
    cells = ("rnn", "relu")
    operations = {"rnn": "CudnnRNNTanh", "relu": "CudnnRNNRelu"}
