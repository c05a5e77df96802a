"""cuDNN's LSTM in JAX: ``jax.experimental.rnn``, the only recurrent network that JAX has of cuDNN, in fp32 and TF32."""

from ..tensorflow import layouts
from .scan import Scan


class CudnnLSTM(Scan):
    """``jax.experimental.rnn.lstm`` on one flat buffer of weights; all of its directions and layers are one operation.

    Its buffer has the layout that TensorFlow's has, which the module of JAX describes as well, and is one trained array
    named ``params``, as ``init_lstm_weight`` makes it. cuDNN's second biases are zero: their gradients are zeroed before
    clipping, which XLA fuses with what follows. The operation is batch-major, so inputs are held batch-major; cuDNN reads
    the lengths of samples on the host, which waits for the device in each pass.
    """

    slug = "jax-cudnn-lstm"
    kind = "vendor"
    uses_cudnn = True
    cells = ("lstm",)
    since = (0, 4, 17)  # earlier releases have no switch for TF32
    devices = ("cuda",)
    mixed = {}
    pure = {}
    compile_seconds = (1.0, 0.4)  # not measured

    def __init__(self, case, data, weights, device, precision):
        import numpy

        self.rows = layouts.rows(case, "cudnn")
        batch_major = numpy.ascontiguousarray(data["x"].swapaxes(0, 1))
        arrays = layouts.convert(case, weights, "cudnn")
        Scan.__init__(self, case, dict(data, x=batch_major), arrays, device, precision)

    def zeros(self):
        """See Scan; states are (h, c), of (L*D, B, H) each."""
        from jax import numpy

        case = self.case
        zero = numpy.zeros((case["layers"] * (2 if case["bidirectional"] else 1), case["batch"], case["hidden"]))
        return (zero, zero)

    def network(self, weights, states, data):
        from jax import numpy
        from jax.experimental import rnn

        from . import network

        case = self.case
        x = weights["embedding"][data["x"]] if case["vocabulary"] else data["x"]
        every = numpy.full((case["batch"],), case["steps"], numpy.int32)
        sizes = (case["inputs"], case["hidden"], case["layers"], 0.0, case["bidirectional"])
        h, c = states or self.zeros()
        hidden, h, c = rnn.lstm(x, h, c, weights["params"], data.get("lengths", every), *sizes)
        return network.outputs(case, weights, hidden.swapaxes(0, 1)), (h, c)

    def trained(self, gradients):
        for name, (start, factors) in layouts.untrained(self.rows).items():
            gradients = dict(gradients, **{name: gradients[name].at[start:].multiply(factors)})
        return gradients

    def gradients(self):
        return layouts.revert(self.case, Scan.gradients(self), "cudnn")
