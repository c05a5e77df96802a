"""Keras: K.function on TensorFlow 1.x or Theano up to 2.3 (``keras_graph``), tf.function from 3 on (``keras_traced``).

Which backend computes is found by what is installed: TensorFlow, else Theano. ``keras_layers`` has the layers and how
their weights lie. Defaults of Keras that change the function are set to the common choice: ``recurrent_activation`` to
the sigmoid (hard_sigmoid before 2.3), the forget bias to what the canonical bias holds.

Keras's Adam adds its epsilon to the square root of the uncorrected second moment ("epsilon hat" at the end of section 2
in Kingma and Ba 2015). EPSILON is what equals the reference's in the first step; ``tensorflow_`` says more.
"""

import importlib.util
import logging
import os
import tempfile
import warnings

from . import graph, layers as keras_layers, published, traced
from .. import theano
from ..base import Implementation
from ..tensorflow import EPSILON

FRAMEWORK = "keras"
BACKEND = "tensorflow" if importlib.util.find_spec("tensorflow") else "theano"
FORK_AFTER_IMPORT = BACKEND == "tensorflow"  # Theano chooses the folder of its compiled code when it is imported

SETTINGS = {"threads": 1}


def engines() -> "object":
    """Return the module that drives the Keras that is installed."""
    import keras

    return graph if hasattr(keras.backend, "gradients") else traced


def load(threads: "int") -> "str":
    """Import Keras on its backend with all that its children need, and keep the thread count; returns the version.

    Keras reads and writes a settings file: its folder is a temporary one, so that a user's own changes nothing.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ["KERAS_BACKEND"] = BACKEND
    os.environ["KERAS_HOME"] = os.path.join(tempfile.gettempdir(), "keras")
    SETTINGS["threads"] = threads
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the old backends trip over NumPy's new words about dtypes
        if BACKEND == "theano":
            theano.load(threads)
        import keras

        logging.getLogger("tensorflow").setLevel(logging.ERROR)
        engines().load(threads)
    return keras.__version__


def facts(device: "str") -> "dict":
    """Return the versions of Keras and its backend, what was set off its default, threads, and the GPU on cuda."""
    import keras

    backend = importlib.import_module(BACKEND)
    found = {"version": keras.__version__, "backend": BACKEND, "backend_version": backend.__version__}
    found.update(adam_epsilon_hat=EPSILON, recurrent_activation="sigmoid")
    found.update(engines().facts(device, SETTINGS["threads"]))
    if engines() is graph:
        found.update(published.facts(SETTINGS["threads"]))
    return found


class Recurrent(Implementation):
    """What all share: convert, and let the engine of the installed version do the work."""

    since = (2, 1)
    compile_seconds = (0.5, 0.5)  # on TensorFlow 1.8 and 2.21 alike, nothing is kept on disk
    second_bias = ""  # a bias that is held at zero: ``row`` below the other, or ``behind`` it

    @classmethod
    def compiling(cls):
        """See Implementation."""
        return (80.0, 9.0) if BACKEND == "theano" else cls.compile_seconds

    @classmethod
    def lacks(cls, case, release, device, precision):
        """See Implementation; also, 2.4 to 2.15 are TensorFlow's own, and TF32 needs TensorFlow 2.4."""
        found = super(Recurrent, cls).lacks(case, release, device, precision)
        if found is None and case.get("protocol") == "published":
            found = published.lacks(case, release)
        if found is None and (2, 4) <= release < (3,):
            return "framework-lacks", "Keras 2.4 to 2.15 are tf.keras by another name: measure TensorFlow"
        if found is None and precision == "tf32" and release < (3,):
            return "precision-lacks", "TensorFlow chooses tf32 since 2.4, with Keras 3 here"
        return found

    @classmethod
    def original(cls, case, data, weights, device, precision):
        """See Implementation."""
        return published.Speech(cls.slug, case, data, dict(SETTINGS, device=device))

    def __init__(self, case, data, weights, device, precision):
        """See Implementation."""
        engine = engines()
        self.case = case
        self.layout = keras_layers.Layout(case, self.second_bias, engine.BLANK_LAST)
        settings = dict(SETTINGS, device=device, precision=precision, epsilon=EPSILON)
        arrays = [self.layout.lay(name, weights[name]) for name in self.layout.names]
        masks = [self.layout.mask(name, weights[name]) for name in self.layout.names]
        self.engine = engine.Engine(case, self.layer, self.layout.data(data), arrays, masks, settings)
        self.reset, self.forward, self.train = self.engine.reset, self.engine.forward, self.engine.train
        self.backward, self.loss, self.synchronize = self.engine.backward, self.engine.loss, self.engine.synchronize
        self.peak_bytes = getattr(self.engine, "peak_bytes", self.peak_bytes)

    def layer(self, own, outer):
        """Return one recurrent layer.

        Args:
            own: the options of the cell.
            outer: the options of the layer around it.
        """
        raise NotImplementedError

    def outputs(self):
        """See Implementation."""
        return self.layout.outputs(self.engine.outputs())

    def gradients(self):
        """See Implementation."""
        found = zip(self.layout.names, self.engine.gradients())
        return {name: self.layout.revert(name, slope) for name, slope in found}


class LSTMCell(Recurrent):
    """``layers.RNN(layers.LSTMCell)``."""

    slug = "keras-lstm-cell"
    kind = "flexible"

    def layer(self, own, outer):
        """See Recurrent."""
        from keras import layers

        return layers.RNN(layers.LSTMCell(self.case["hidden"], **own), **outer)


class LSTM(Recurrent):
    """``layers.LSTM``: the same cell in a loop, but for Keras 3 on a GPU, which takes cuDNN."""

    slug = "keras-lstm"
    kind = "vendor"
    originals = ("asr-lstm",)

    @classmethod
    def kind_in(cls, release: "tuple") -> "str":
        """See Implementation; before 3 it never takes cuDNN."""
        return "flexible" if release < (3,) else cls.kind

    def layer(self, own, outer):
        """See Recurrent."""
        from keras import layers

        return layers.LSTM(self.case["hidden"], **dict(own, **outer))


class CuDNNLSTM(Recurrent):
    """``layers.CuDNNLSTM``, whose second bias is held at zero."""

    slug = "keras-cudnn-lstm"
    kind = "vendor"
    originals = ("asr-lstm",)
    before = (3,)
    devices = ("cuda",)
    precisions = ("fp32",)
    ragged = False  # CuDNNLSTM refuses masks
    second_bias = "behind"

    def layer(self, own, outer):
        """See Recurrent."""
        from keras import layers

        keep = ("kernel_initializer", "recurrent_initializer", "unit_forget_bias")
        return layers.CuDNNLSTM(self.case["hidden"], **dict({name: own[name] for name in keep}, **outer))


class SimpleRNN(Recurrent):
    """``layers.SimpleRNN``."""

    slug = "keras-simple-rnn"
    kind = "flexible"
    cells = ("rnn", "relu")

    def layer(self, own, outer):
        """See Recurrent."""
        from keras import layers

        squash = "relu" if self.case["cell"] == "relu" else "tanh"
        return layers.SimpleRNN(self.case["hidden"], activation=squash, **dict(own, **outer))


class GRU(Recurrent):
    """``layers.GRU`` in a loop, also on a GPU, with the reset gate after the product; its second bias is held at zero."""

    slug = "keras-gru"
    kind = "flexible"
    cells = ("gru",)
    since = (2, 1, 5)
    second_bias = "row"

    def layer(self, own, outer):
        """See Recurrent."""
        from keras import layers

        return layers.GRU(self.case["hidden"], reset_after=True, **dict(own, **outer))


IMPLEMENTATIONS = (LSTMCell, LSTM, CuDNNLSTM, SimpleRNN, GRU)
