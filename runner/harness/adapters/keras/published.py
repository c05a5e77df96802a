"""The published protocol in Keras 2.1: asr-lstm as stefbraun/rnn_benchmarks (commit eb6358a) trains it, for Braun 2018.

Its two programs differ in one layer. No step is compared with a reference: the aligned program of the same class was
compared just before.
"""

from ..tensorflow.v1 import session
from . import graph

SIGMOID = (2, 3)  # the first release with the sigmoid as the default of recurrent_activation


def lacks(case, release):
    """Return (skip code, reason) if a case has no original, or if this release computes another function; else None."""
    if case["layers"] > 1 or case["bidirectional"] or case["loss"] != "ce":
        return "framework-lacks", "Braun 2018 measured Keras with one layer, one direction and cross entropy only"
    if release >= SIGMOID:
        reason = "from Keras 2.3 on the original's gates have the sigmoid; the published figures have the hard sigmoid"
        return "framework-lacks", reason
    return None


def facts(threads):
    """Return the facts in which the published protocol differs from the environment."""
    described = {"recurrent_activation_published": "hard_sigmoid"}
    return dict(described, inter_op_threads_published=threads) if graph.on_tensorflow() else described


class Speech(object):
    """One step: ``train_on_batch`` with the whole batch from the host, and the loss to it.

    x is (B, T, I); the network accepts any B and T. ``LSTM`` has ``implementation=2`` and Keras's defaults, the hard
    sigmoid in its gates among them; ``CuDNNLSTM`` has both biases of each gate, all trained. The output layer has no
    bias. Labels are made one-hot within each step. The library draws the first weights; the original had no seed, here
    it is the case's. ``weights`` counts as the original's ``count_params`` did.
    """

    def __init__(self, slug, case, data, settings):
        """Compile the network of the class ``slug`` on the case and its data; ``settings``: ``threads``, ``device``."""
        import numpy

        self.case, self.session, self.last = case, None, float("nan")
        self.batch = (numpy.ascontiguousarray(data["x"].transpose(1, 0, 2)), data["target"])
        numpy.random.seed(case["seed"])  # Keras draws from it, or takes its backends' seeds from it
        if not graph.on_tensorflow():
            self.model = recognizer(slug, case)
            return
        import tensorflow as tf

        self.session = session.published_session(tf.Graph(), settings["threads"])
        with self.session.graph.as_default(), tf.device(None if settings["device"] == "cuda" else "/cpu:0"):
            self.model = recognizer(slug, case)

    @property
    def weights(self):
        """Return how many numbers are trained."""
        return self.model.count_params()

    def train(self):
        """Do one step of the original's loop."""
        from keras.utils import to_categorical

        x, target = self.batch
        with graph.inside(self.session):
            self.last = self.model.train_on_batch(x=x, y=to_categorical(target, num_classes=self.case["classes"]))

    def loss(self):
        """Return the loss of the last step."""
        return float(self.last)

    def synchronize(self):
        """Do nothing: the loss is on the host, and functions return when the device has finished them."""


def recognizer(slug, case):
    """Return the original's network, compiled; its functions are compiled in the first step."""
    from keras import layers, models, optimizers

    x = layers.Input(shape=(None, case["inputs"]), dtype="float32")
    if slug == "keras-cudnn-lstm":
        hidden = layers.CuDNNLSTM(case["hidden"], return_sequences=False)(x)
    else:
        hidden = layers.LSTM(case["hidden"], return_sequences=False, implementation=2)(x)
    probabilities = layers.Dense(case["classes"], activation="softmax", use_bias=False)(hidden)
    model = models.Model(inputs=x, outputs=probabilities)
    model.compile(optimizer=optimizers.Adam(lr=case["rate"]), loss="categorical_crossentropy")
    return model
