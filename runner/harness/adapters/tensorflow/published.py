"""The published protocol in TensorFlow 1.x: what the original programs did in one step, quirks and all.

``Speech`` is asr-lstm as stefbraun/rnn_benchmarks (commit eb6358a) trains it, behind Braun 2018. ``Step`` is rnn-step as
glample/rnn-benchmarks (commit 7b737bf) computed it with TensorFlow 0.8. ``Words`` is the large model of the PTB tutorial
(tensorflow/models, tutorials/rnn/ptb, commit 086660f), behind the figures that yjchoe/TFCudnnLSTM quotes. All start from
the weights that the library draws, without a seed, and no step is checked against a reference: the aligned program of
the same class was, a moment before.

What has a kernel on the GPU runs there without being told to. The sessions differ from the originals': threads are as
many as the run asks for, those that start operations too (both ways of a layer can be started at once), where the
library takes one for each core; and memory of the GPU grows, as the aligned session's does, for the first session of a
process decides.
"""

from .v1 import session

SPREAD = 0.1  # of the output layer's first weights where every step has an output: a normal distribution, cut at twice
FIRST = 0.04  # of the tutorial's large model, as the next one
KEEP = 0.35
TIME_MAJOR = ("lstm-block-fused-cell", "cudnn-lstm")
CELLS = {"lstm-cell": "LSTMCell", "lstm-block-cell": "LSTMBlockCell"}
CELLS.update({"basic-lstm-cell": "BasicLSTMCell", "basic-rnn-cell": "BasicRNNCell"})


class Original(object):
    """A graph, which ``build(data)`` fills, and its session. ``weights``: how many numbers are trained."""

    def __init__(self, slug: "str", case: "dict", data: "dict", settings: "dict") -> "None":
        """Take the implementation, the case, its data, and ``threads`` and ``device``."""
        import tensorflow as tf

        self.slug, self.case = slug, case
        graph = tf.Graph()
        with graph.as_default(), tf.device(None if settings["device"] == "cuda" else "/cpu:0"):
            self.build(data)
            self.weights = self.count()
            start = tf.global_variables_initializer()
        self.session = session.published_session(graph, settings["threads"])
        self.session.run(start)

    def count(self):
        """Return how many numbers the graph trains."""
        import tensorflow as tf

        return sum(variable.shape.num_elements() for variable in tf.trainable_variables())

    def synchronize(self):
        """Do nothing: ``Session.run`` returns when the devices have finished."""


class Speech(Original):
    """One step: the whole batch is fed, Adam steps with the epsilon that the library has, the loss is fetched.

    Arrays are batch-major; ``lstm-block-fused-cell`` and ``cudnn-lstm`` are fed a time-major view of these. Lengths are
    fed where all are equal, too, and used by all but ``cudnn-lstm``. The output layer has no bias, but in CTC with
    ``lstm-cell``; there the blank is the last class, labels stay as they are, and the loss is a mean over the batch. The
    forget bias is 1, in cuDNN 0.
    """

    def build(self, data):
        """Add all that is run to the graph."""
        import numpy
        import tensorflow as tf

        case, major = self.case, self.slug in TIME_MAJOR
        x = tf.placeholder(tf.float32, (None, None, case["inputs"]))
        lengths = tf.placeholder(tf.int32, (None,))
        array = numpy.ascontiguousarray(data["x"].transpose(1, 0, 2))
        every = numpy.full(case["batch"], case["steps"], numpy.int32)
        self.feed = {x: array.transpose(1, 0, 2) if major else array, lengths: data.get("lengths", every)}
        hidden = self.recurrent(x, lengths)
        if case["loss"] == "ctc":
            losses = self.connectionist(hidden, lengths, data["target"])
        else:
            y = tf.placeholder(tf.int32, (None,))
            self.feed[y] = data["target"]
            said = tf.layers.dense(hidden[-1, :, :] if major else hidden[:, -1, :], case["classes"], use_bias=False)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(logits=said, labels=y)
        loss = tf.reduce_mean(losses)
        self.wanted = [tf.train.AdamOptimizer(case["rate"]).minimize(loss), loss]

    def recurrent(self, x, lengths):
        """Return every hidden state of the last layer, batch-major or time-major as ``x`` is."""
        import tensorflow as tf

        case, contrib = self.case, tf.contrib.rnn
        if self.slug == "cudnn-lstm":
            way = "bidirectional" if case["bidirectional"] else "unidirectional"
            self.layer = tf.contrib.cudnn_rnn.CudnnLSTM(case["layers"], case["hidden"], direction=way)
            return self.layer(x)[0]
        if self.slug == "lstm-block-fused-cell":
            assert case["layers"] == 1 and not case["bidirectional"]  # the original knows no other
            return contrib.LSTMBlockFusedCell(case["hidden"])(x, sequence_length=lengths, dtype=tf.float32)[0]
        make = getattr(contrib, CELLS[self.slug])
        options = {"sequence_length": lengths, "dtype": tf.float32}
        if not case["bidirectional"]:
            return tf.nn.dynamic_rnn(make(case["hidden"]), x, **options)[0]
        forth, back = [[make(case["hidden"]) for _ in range(case["layers"])] for _ in range(2)]
        return contrib.stack_bidirectional_dynamic_rnn(forth, back, x, **options)[0]

    def connectionist(self, hidden, lengths, target):
        """Return the CTC loss of each sample of hidden states (B, T, 2*H) and labels (B, N)."""
        import numpy
        import tensorflow as tf

        case, width = self.case, 2 * self.case["hidden"]
        y = tf.sparse_placeholder(tf.int32)
        self.feed[y] = (numpy.indices(target.shape).reshape(2, -1).T, target.ravel(), target.shape)
        kernel = tf.Variable(tf.truncated_normal((width, case["classes"]), stddev=SPREAD))
        said = tf.matmul(tf.reshape(hidden, (-1, width)), kernel)
        if self.slug == "lstm-cell":
            said += tf.Variable(tf.zeros((case["classes"],)))
        sizes = tf.shape(hidden)
        said = tf.transpose(tf.reshape(said, (sizes[0], sizes[1], case["classes"])), (1, 0, 2))
        return tf.nn.ctc_loss(y, said, lengths, time_major=True)

    def count(self):
        """See Original; a buffer of cuDNN's counts for what it holds, both biases of each gate."""
        import numpy
        import tensorflow as tf

        if self.slug != "cudnn-lstm":
            return Original.count(self)
        held = self.layer.canonical_weight_shapes + self.layer.canonical_bias_shapes
        sizes = [variable.shape.num_elements() for variable in tf.trainable_variables()]  # None where it is the buffer
        return sum(int(numpy.prod(shape)) for shape in held) + sum(size for size in sizes if size is not None)

    def train(self):
        """Do one step of the original's loop."""
        _, self.last = self.session.run(self.wanted, self.feed)

    def loss(self):
        """Return the loss of the last step."""
        return float(self.last)


class Step(Original):
    """One step: the 30 slices and the target are fed, SGD steps, and nothing is fetched; forward fetches the last state.

    The steps are unrolled in the graph. The loss is the sum of squares, for the mean had no CUDA kernel then: a step is
    B*H times as large as in the other libraries' programs. At the published sizes that is too large: units saturate, and
    the loss stays finite but may end above its start (in 1.15: 12584 after one step of rnn-b32-h512, 12664 after a
    hundred). The original never looks at it. TensorFlow 0.8 drew first weights by ``uniform_unit_scaling_initializer``
    and kept both states of an LSTM in one tensor; 1.x has Glorot's and two.
    """

    def build(self, data):
        """Add all that is run to the graph."""
        import tensorflow as tf

        case = self.case
        self.arrays = data["x"], data["target"]
        self.x = [tf.placeholder(tf.float32, (case["batch"], case["inputs"])) for _ in range(case["steps"])]
        self.y = tf.placeholder(tf.float32, (case["batch"], case["hidden"]))
        cell = getattr(tf.contrib.rnn, CELLS[self.slug])(case["hidden"])
        self.last = tf.nn.static_rnn(cell, self.x, dtype=tf.float32)[0][-1]
        self.cost = tf.reduce_sum((self.last - self.y) ** 2)
        self.step = tf.train.GradientDescentOptimizer(case["rate"]).minimize(self.cost)

    def slices(self):
        """Return what is fed to the steps."""
        return {place: self.arrays[0][k, :, :] for k, place in enumerate(self.x)}

    def all(self):
        """Return what is fed to the steps and to the loss."""
        found = self.slices()
        found[self.y] = self.arrays[1]
        return found

    def forward(self):
        """Do one iteration of the original's first loop."""
        self.session.run(self.last, self.slices())

    def train(self):
        """Do one iteration of the original's second loop."""
        self.session.run(self.step, self.all())

    def loss(self):
        """Return the loss at the present weights, which the original never asks for."""
        return float(self.session.run(self.cost, self.all()))


class Words(Original):
    """One step: the states are fed, SGD steps with the gradient's norm cut, the loss and the states are fetched.

    The steps are unrolled in the graph. Dropout is on the input and on what each layer gives, the last one too. The loss
    is the sum over the steps of the mean over the batch. The embedding lies on the CPU, and the norm takes each of its
    gradient's slices for itself. Left out: the queue that numbers the batches. The tutorial cuts each out of a text that
    lies in the graph; here the one batch lies there.
    """

    def build(self, data):
        """Add all that is run to the graph."""
        import tensorflow as tf

        case, hidden = self.case, self.case["hidden"]
        with tf.variable_scope("model", initializer=tf.random_uniform_initializer(-FIRST, FIRST)):
            with tf.device("/cpu:0"):
                words, y = tf.constant(data["x"].T), tf.constant(data["target"].T)
                table = tf.get_variable("embedding", (case["vocabulary"], case["inputs"]))
                x = tf.nn.embedding_lookup(table, words)
            found = self.recurrent(tf.nn.dropout(x, KEEP))
            kernel = tf.get_variable("kernel", (hidden, case["classes"]))
            said = tf.nn.xw_plus_b(found, kernel, tf.get_variable("bias", (case["classes"],)))
        said = tf.reshape(said, (case["batch"], case["steps"], case["classes"]))
        each = tf.contrib.seq2seq.sequence_loss(said, y, tf.ones(y.shape), average_across_timesteps=False)
        cost = tf.reduce_sum(each)
        trained = tf.trainable_variables()
        slopes, _ = tf.clip_by_global_norm(tf.gradients(cost, trained), case["clip_norm"])
        optimizer = tf.train.GradientDescentOptimizer(tf.Variable(case["rate"], trainable=False))
        step = optimizer.apply_gradients(zip(slopes, trained), global_step=tf.train.get_or_create_global_step())
        self.wanted = {"cost": cost, "states": self.ends, "step": step}
        self.states = None

    def recurrent(self, x):
        """Return every hidden state of the last layer, (B*T, H), of ``x`` (B, T, I); keep where states go in and out."""
        import tensorflow as tf

        case, contrib = self.case, tf.contrib.rnn
        make = getattr(contrib, CELLS[self.slug])
        cells = [make(case["hidden"], forget_bias=case["forget_bias"]) for _ in range(case["layers"])]
        cell = contrib.MultiRNNCell([contrib.DropoutWrapper(one, output_keep_prob=KEEP) for one in cells])
        self.starts = state = cell.zero_state(case["batch"], tf.float32)
        hidden = []
        with tf.variable_scope("network"):
            for step in range(case["steps"]):
                if step > 0:
                    tf.get_variable_scope().reuse_variables()
                found, state = cell(x[:, step, :], state)
                hidden.append(found)
        self.ends = state
        return tf.reshape(tf.concat(hidden, 1), (-1, case["hidden"]))

    def train(self):
        """Do one step of the original's loop; the first one starts from zero."""
        if self.states is None:
            self.states = self.session.run(self.starts)
        feed = {}
        for places, arrays in zip(self.starts, self.states):
            feed[places.c], feed[places.h] = arrays.c, arrays.h
        found = self.session.run(self.wanted, feed)
        self.states, self.last = found["states"], found["cost"]

    def loss(self):
        """Return the loss of the last step, that of all steps of a batch together."""
        return float(self.last)


PROGRAMS = {"asr-lstm": Speech, "rnn-step": Step, "lm-lstm": Words}
