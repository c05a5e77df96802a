"""The published protocol in TensorFlow 1.x: what the original programs did in one step, quirks and all.

``Speech`` is asr-lstm as stefbraun/rnn_benchmarks (commit eb6358a) trains it, for Braun 2018. ``Step`` is rnn-step as
glample/rnn-benchmarks (commit 7b737bf) computed it with TensorFlow 0.8. ``Words`` is the large model of the PTB
tutorial (tensorflow/models, tutorials/rnn/ptb, commit 086660f), the source of the figures that yjchoe/TFCudnnLSTM
quotes. All start from weights that the library draws, without a seed, and no step is compared with a reference: the
aligned program of the same class was compared just before.

Operations with a GPU kernel run on the GPU by default. The sessions differ from the originals': both thread pools have
the size that the run sets (both directions of a layer can be started at once), where the library takes one thread for
each core; and GPU memory grows, as in the aligned session, because the first session of a process decides.
"""

from .v1 import session

SPREAD = 0.1  # standard deviation of the output layer's first weights in CTC: a normal distribution, cut at twice it
FIRST = 0.04  # limit of the first weights, uniform, and KEEP, share kept by dropout: the tutorial's large model
KEEP = 0.35
TIME_MAJOR = ("lstm-block-fused-cell", "cudnn-lstm")
CELLS = {"lstm-cell": "LSTMCell", "lstm-block-cell": "LSTMBlockCell"}
CELLS.update({"basic-lstm-cell": "BasicLSTMCell", "basic-rnn-cell": "BasicRNNCell"})


class Original(object):
    """A graph, which ``build(data)`` fills, and its session. ``weights`` is the number of trained weights."""

    def __init__(self, slug: "str", case: "dict", data: "dict", settings: "dict") -> "None":
        """Build and initialise the graph; ``settings`` are ``threads`` and ``device``."""
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
        """Return the number of weights that the graph trains."""
        import tensorflow as tf

        return sum(variable.shape.num_elements() for variable in tf.trainable_variables())

    def synchronize(self):
        """Do nothing: ``Session.run`` returns when the devices have finished."""


class Speech(Original):
    """One step: the entire batch is fed, Adam steps with the library's default epsilon, the loss is fetched.

    Arrays are batch-major; ``lstm-block-fused-cell`` and ``cudnn-lstm`` are fed a time-major view of these. Lengths are
    fed even where all are equal, and used by all except ``cudnn-lstm``. The output layer has no bias, except in CTC
    with ``lstm-cell``. In CTC the blank is the last class, labels are unchanged, and the loss is a mean over the batch.
    The forget bias is 1, in cuDNN 0.
    """

    def build(self, data):
        """Add all operations to the graph."""
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
            logits = tf.layers.dense(hidden[-1, :, :] if major else hidden[:, -1, :], case["classes"], use_bias=False)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=y)
        loss = tf.reduce_mean(losses)
        self.fetches = [tf.train.AdamOptimizer(case["rate"]).minimize(loss), loss]

    def recurrent(self, x, lengths):
        """Return every hidden state of the last layer, batch-major or time-major as ``x`` is."""
        import tensorflow as tf

        case, contrib = self.case, tf.contrib.rnn
        if self.slug == "cudnn-lstm":
            way = "bidirectional" if case["bidirectional"] else "unidirectional"
            self.layer = tf.contrib.cudnn_rnn.CudnnLSTM(case["layers"], case["hidden"], direction=way)
            return self.layer(x)[0]
        if self.slug == "lstm-block-fused-cell":
            assert case["layers"] == 1 and not case["bidirectional"]  # the original has no other
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
        logits = tf.matmul(tf.reshape(hidden, (-1, width)), kernel)
        if self.slug == "lstm-cell":
            logits += tf.Variable(tf.zeros((case["classes"],)))
        sizes = tf.shape(hidden)
        logits = tf.transpose(tf.reshape(logits, (sizes[0], sizes[1], case["classes"])), (1, 0, 2))
        return tf.nn.ctc_loss(y, logits, lengths, time_major=True)

    def count(self):
        """See Original; the buffer of cuDNN counts as the arrays it holds, with both biases of each gate."""
        import numpy
        import tensorflow as tf

        if self.slug != "cudnn-lstm":
            return Original.count(self)
        held = self.layer.canonical_weight_shapes + self.layer.canonical_bias_shapes
        sizes = [variable.shape.num_elements() for variable in tf.trainable_variables()]  # None where it is the buffer
        return sum(int(numpy.prod(shape)) for shape in held) + sum(size for size in sizes if size is not None)

    def train(self):
        """Do one step of the original's loop."""
        _, self.last = self.session.run(self.fetches, self.feed)

    def loss(self):
        """Return the loss of the last step."""
        return float(self.last)


class Step(Original):
    """One step: the 30 slices and the target are fed, SGD steps, nothing is fetched; forward fetches the last state.

    The steps are unrolled in the graph. The loss is the sum of squares, as the mean had no CUDA kernel then: a step
    is B*H times as large as in the other libraries' programs. At the published sizes that is too large: units saturate,
    and the loss stays finite but may end above its start (in 1.15: 12584 after one step of rnn-b32-h512, 12664 after a
    hundred). The original never reads it. TensorFlow 0.8 drew first weights by ``uniform_unit_scaling_initializer`` and
    kept both states of an LSTM in one tensor; 1.x has Glorot's initializer and two tensors.
    """

    def build(self, data):
        """Add all operations to the graph."""
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
        """Return the feed of the steps."""
        return {placeholder: self.arrays[0][k, :, :] for k, placeholder in enumerate(self.x)}

    def slices_and_target(self):
        """Return the feed of the steps and of the loss."""
        feed = self.slices()
        feed[self.y] = self.arrays[1]
        return feed

    def forward(self):
        """Do one iteration of the original's first loop."""
        self.session.run(self.last, self.slices())

    def train(self):
        """Do one iteration of the original's second loop."""
        self.session.run(self.step, self.slices_and_target())

    def loss(self):
        """Return the loss at the present weights, which the original never computes."""
        return float(self.session.run(self.cost, self.slices_and_target()))


class Words(Original):
    """One step: the states are fed, SGD steps with the gradient's norm cut, the loss and the states are fetched.

    The steps are unrolled in the graph. Dropout is on the input and on the output of each layer, the last one included.
    The loss is the sum over the steps of the mean over the batch. The embedding is on the CPU, and the norm takes each
    of its gradient's slices for itself. The queue that numbers the batches is left out. The tutorial cuts each batch
    out of a text in the graph; here the graph holds the only batch.
    """

    def build(self, data):
        """Add all operations to the graph."""
        import tensorflow as tf

        case, hidden = self.case, self.case["hidden"]
        with tf.variable_scope("model", initializer=tf.random_uniform_initializer(-FIRST, FIRST)):
            with tf.device("/cpu:0"):
                words, y = tf.constant(data["x"].T), tf.constant(data["target"].T)
                table = tf.get_variable("embedding", (case["vocabulary"], case["inputs"]))
                x = tf.nn.embedding_lookup(table, words)
            states = self.recurrent(tf.nn.dropout(x, KEEP))
            kernel = tf.get_variable("kernel", (hidden, case["classes"]))
            logits = tf.nn.xw_plus_b(states, kernel, tf.get_variable("bias", (case["classes"],)))
        logits = tf.reshape(logits, (case["batch"], case["steps"], case["classes"]))
        each = tf.contrib.seq2seq.sequence_loss(logits, y, tf.ones(y.shape), average_across_timesteps=False)
        cost = tf.reduce_sum(each)
        trained = tf.trainable_variables()
        gradients, _ = tf.clip_by_global_norm(tf.gradients(cost, trained), case["clip_norm"])
        optimizer = tf.train.GradientDescentOptimizer(tf.Variable(case["rate"], trainable=False))
        step = optimizer.apply_gradients(zip(gradients, trained), global_step=tf.train.get_or_create_global_step())
        self.fetches = {"cost": cost, "states": self.ends, "step": step}
        self.states = None

    def recurrent(self, x):
        """Return every hidden state of the last layer, (B*T, H), of ``x`` (B, T, I); keep the first and last states."""
        import tensorflow as tf

        case, contrib = self.case, tf.contrib.rnn
        make = getattr(contrib, CELLS[self.slug])
        cells = [make(case["hidden"], forget_bias=case["forget_bias"]) for _ in range(case["layers"])]
        cell = contrib.MultiRNNCell([contrib.DropoutWrapper(layer, output_keep_prob=KEEP) for layer in cells])
        self.starts = state = cell.zero_state(case["batch"], tf.float32)
        hidden = []
        with tf.variable_scope("network"):
            for step in range(case["steps"]):
                if step > 0:
                    tf.get_variable_scope().reuse_variables()
                output, state = cell(x[:, step, :], state)
                hidden.append(output)
        self.ends = state
        return tf.reshape(tf.concat(hidden, 1), (-1, case["hidden"]))

    def train(self):
        """Do one step of the original's loop; the first one starts from zero."""
        if self.states is None:
            self.states = self.session.run(self.starts)
        feed = {}
        for tensors, arrays in zip(self.starts, self.states):
            feed[tensors.c], feed[tensors.h] = arrays.c, arrays.h
        fetched = self.session.run(self.fetches, feed)
        self.states, self.last = fetched["states"], fetched["cost"]

    def loss(self):
        """Return the loss of the last step, summed over the steps of the batch."""
        return float(self.last)


PROGRAMS = {"asr-lstm": Speech, "rnn-step": Step, "lm-lstm": Words}
