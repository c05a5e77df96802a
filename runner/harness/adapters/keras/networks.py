"""The recurrent networks of Keras: each class says how its layer is built; one more class adds one."""

from . import layers as keras_layers, published, runtime, traced
from .. import mixed
from ..base import Implementation
from ..driven import Driven
from ..tensorflow.optimizers import EPSILON

SINCE = {"cpu": {"fp16": (3, 15), "bf16": (3, 15)}, "cuda": {"fp16": (3,), "bf16": (3,)}}
"""Device -> precision -> the first release in which networks of 16 bits are measured: on a CPU the tested one."""


class Recurrent(Driven, Implementation):
    """What all share: they convert the arrays, and the engine of the installed version runs the network."""

    since = (2, 1)
    mixed = SINCE
    pure = SINCE
    compile_seconds = (0.5, 0.5)  # on TensorFlow 1.8 and 2.21 alike, nothing is kept on disk
    second_bias = ""  # a bias that is held at zero: ``row`` below the other, or ``behind`` it

    @classmethod
    def compiling(cls):
        return (80.0, 9.0) if runtime.BACKEND == "theano" else cls.compile_seconds

    @classmethod
    def lacks(cls, case, release, device, precision):
        """See Implementation; also, 2.4 to 2.15 are TensorFlow's own, and TF32 needs TensorFlow 2.4."""
        skip = super(Recurrent, cls).lacks(case, release, device, precision)
        if skip is None and case.get("protocol") == "published":
            skip = published.lacks(case, release)
        if skip is not None:
            return skip
        if (2, 4) <= release < (3,):
            return "framework-lacks", "Keras 2.4 to 2.15 are tf.keras under another name: measure TensorFlow instead"
        if precision == "tf32" and release < (3,):
            return "precision-lacks", "TF32 needs TensorFlow 2.4 or later, and with it Keras 3"
        if precision == "bf16" and device == "cpu" and case["output_bias"]:
            return "precision-lacks", "on a CPU, TensorFlow sums the gradient of the output layer's bias in bf16"
        return None

    @classmethod
    def original(cls, case, data, weights, device, precision):
        return published.Speech(cls.slug, case, data, dict(runtime.SETTINGS, device=device))

    def __init__(self, case, data, weights, device, precision):
        module = runtime.engine_module()
        self.case, self.device = case, device
        self.description = mixed.description(case, precision, "policy mixed_{}")
        self.layout = keras_layers.Layout(case, self.second_bias, module.BLANK_LAST)
        settings = dict(runtime.SETTINGS, device=device, precision=precision, epsilon=EPSILON)
        arrays = [self.layout.to_keras(name, weights[name]) for name in self.layout.names]
        masks = [self.layout.mask(name, weights[name]) for name in self.layout.names]
        self.engine = module.Engine(case, self.layer, self.layout.data(data), arrays, masks, settings)

    def with_cudnn(self):
        """Return the option of LSTM and GRU for cuDNN: on a GPU, Keras 3 must use it, and fails where it cannot."""
        return {"use_cudnn": self.device == "cuda"} if runtime.engine_module() is traced else {}

    def layer(self, cell_options, options):
        """Return one recurrent layer.

        Args:
            cell_options: the options of the cell.
            options: the options of the layer around it.
        """
        raise NotImplementedError

    def outputs(self):
        return self.layout.outputs(self.engine.outputs())

    def gradients(self):
        gradients = zip(self.layout.names, self.engine.gradients())
        return {name: self.layout.to_canonical(name, gradient) for name, gradient in gradients}


class LSTMCell(Recurrent):
    """``layers.RNN(layers.LSTMCell)``."""

    slug = "keras-lstm-cell"
    kind = "flexible"

    def layer(self, cell_options, options):
        from keras import layers

        return layers.RNN(layers.LSTMCell(self.case["hidden"], **cell_options), **options)


class CudnnSince3(object):
    """A mix-in for layers that are a loop before Keras 3, and cuDNN's in Keras 3 on a GPU."""

    kind = "vendor"

    @classmethod
    def kind_in(cls, release: "tuple") -> "str":
        return "flexible" if release < (3,) else cls.kind

    @classmethod
    def uses_cudnn_in(cls, release: "tuple") -> "bool":
        return release >= (3,)


class LSTM(CudnnSince3, Recurrent):
    """``layers.LSTM``: the same cell in a loop, except in Keras 3 on a GPU, where it is cuDNN's."""

    slug = "keras-lstm"
    originals = ("asr-lstm",)

    def layer(self, cell_options, options):
        from keras import layers

        return layers.LSTM(self.case["hidden"], **dict(cell_options, **dict(options, **self.with_cudnn())))


class CuDNNLSTM(Recurrent):
    """``layers.CuDNNLSTM``, whose second bias is held at zero."""

    slug = "keras-cudnn-lstm"
    kind = "vendor"
    uses_cudnn = True
    originals = ("asr-lstm",)
    before = (3,)
    devices = ("cuda",)
    precisions = ("fp32",)
    ragged = False  # CuDNNLSTM refuses masks
    second_bias = "behind"

    def layer(self, cell_options, options):
        from keras import layers

        names = ("kernel_initializer", "recurrent_initializer", "unit_forget_bias")
        return layers.CuDNNLSTM(self.case["hidden"], **dict({name: cell_options[name] for name in names}, **options))


class SimpleRNN(Recurrent):
    """``layers.SimpleRNN``."""

    slug = "keras-simple-rnn"
    kind = "flexible"
    cells = ("rnn", "relu")

    def layer(self, cell_options, options):
        from keras import layers

        squash = "relu" if self.case["cell"] == "relu" else "tanh"
        return layers.SimpleRNN(self.case["hidden"], activation=squash, **dict(cell_options, **options))


class GRUCell(Recurrent):
    """``layers.RNN(layers.GRUCell)`` with the reset gate after the product; its second bias is zero."""

    slug = "keras-gru-cell"
    kind = "flexible"
    cells = ("gru",)
    since = (2, 1, 5)
    second_bias = "row"

    def layer(self, cell_options, options):
        from keras import layers

        return layers.RNN(layers.GRUCell(self.case["hidden"], reset_after=True, **cell_options), **options)


class GRU(CudnnSince3, GRUCell):
    """``layers.GRU``: the same cell in a loop, except in Keras 3 on a GPU, where it is cuDNN's."""

    slug = "keras-gru"

    def layer(self, cell_options, options):
        from keras import layers

        named = dict(cell_options, **dict(options, **self.with_cudnn()))
        return layers.GRU(self.case["hidden"], reset_after=True, **named)


NETWORKS = (LSTMCell, LSTM, CuDNNLSTM, SimpleRNN, GRUCell, GRU)
