"""From hidden states to a loss, and the clipping of gradients: the same operations in 1.x and 2.x."""

from ...cases.losses import LOSSES, logits_of_every_step


def outputs(tf: "object", case: "dict", hidden: "object", last: "object", weights: "dict") -> "object":
    """Return the outputs of a network, as the table in ``Implementation`` has them.

    Args:
        tf: the module.
        case: loss and sizes.
        hidden: every hidden state of the top layer, (T, B, D*H); not used where the loss reads the last one alone.
        last: the hidden state of the last step, (B, D*H).
        weights: ``output/kernel`` (D*H, C) and ``output/bias`` (C,) where the case has them.
    """
    reads = LOSSES[case["loss"]].reads
    states = last if reads == "last" else hidden
    if reads == "mean":
        states = tf.reduce_mean(hidden, 0)
    if not case["classes"]:
        return states
    every = logits_of_every_step(case["loss"])
    if every:
        states = tf.reshape(states, (case["steps"] * case["batch"], -1))
    logits = tf.matmul(states, weights["output/kernel"])
    if case["output_bias"]:
        bias = weights["output/bias"]
        logits = tf.nn.bias_add(tf.cast(logits, bias.dtype.base_dtype), bias)
    return tf.reshape(logits, (case["steps"], case["batch"], case["classes"])) if every else logits


def mean_loss(tf: "object", case: "dict", outputs: "object", held: "dict", ctc: "object") -> "object":
    """Return the loss of what the function ``outputs`` returned.

    Args:
        tf: the module.
        case: the loss.
        outputs: see the function of that name.
        held: ``target``, and ``lengths`` where samples have their own.
        ctc: a function of (logits, labels, lengths) that returns the CTC loss of each sample.
    """
    target = held["target"]
    if not LOSSES[case["loss"]].logits:
        return tf.reduce_mean(tf.square(outputs - target))
    if case["loss"] == "bce":
        target = tf.reshape(target, (case["batch"], 1))
        return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=target, logits=outputs))
    if case["loss"] == "ctc":
        return tf.reduce_mean(ctc(outputs, target, held["lengths"]))
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=target, logits=outputs))


def sparse(tf: "object", labels: "object") -> "object":
    """Return labels (B, N), all of which count, as the SparseTensor that ``nn.ctc_loss`` takes."""
    import numpy

    shape = labels.shape.as_list()
    indices = numpy.indices(shape).reshape(2, -1).T
    return tf.SparseTensor(indices, tf.reshape(labels, (-1,)), shape)


def clipped(tf: "object", case: "dict", gradients: "dict", rows: "dict") -> "dict":
    """Return gradients by held name, clipped as the case says, each as dense or as sparse as it was.

    Those of an embedding are IndexedSlices, with as many slices for a word as it has occurrences. TensorFlow's clipping
    takes each slice for itself, so its norm differs from the gradient's: slices of one word are summed first.

    Args:
        tf: the module.
        case: ``clip_value``, ``clip_each`` and ``clip_norm``.
        gradients: by held name.
        rows: held name -> [(canonical name, rows)], because ``clip_each`` clips canonical tensors.
    """
    if not (case["clip_value"] or case["clip_each"] or case["clip_norm"]):
        return gradients
    gradients = {name: summed(tf, gradient) for name, gradient in gradients.items()}
    if case["clip_value"]:
        limit = case["clip_value"]
        values = {name: tf.clip_by_value(_values(tf, g), -limit, limit) for name, g in gradients.items()}
        gradients = {name: _with_values(tf, gradient, values[name]) for name, gradient in gradients.items()}
    if case["clip_each"]:
        gradients = _clip_each(tf, case["clip_each"], gradients, rows)
    if case["clip_norm"]:
        names = sorted(gradients)
        trained = [part for name in names for part in trained_parts(gradients[name], rows[name])]
        norm = (getattr(tf, "global_norm", None) or tf.linalg.global_norm)(trained)
        by_norm, _ = tf.clip_by_global_norm([gradients[name] for name in names], case["clip_norm"], norm)
        gradients = dict(zip(names, by_norm))
    return gradients


def trained_parts(gradient: "object", sizes: "list") -> "list":
    """Return the slices of a gradient whose blocks are trained: the gradient itself where all of it is.

    Slices from the first row on share the gradient's memory, so that cuDNN's large buffer is not copied.

    Args:
        gradient: of one held array.
        sizes: [(canonical name, rows)] of its blocks; those without a name are never trained.
    """
    if all(canonical is not None for canonical, _ in sizes):
        return [gradient]
    parts, start, end = [], 0, 0
    for canonical, count in list(sizes) + [(None, 0)]:
        if canonical is None:
            parts += [gradient[start:end]] if end > start else []
            start = end + count
        end += count
    return parts


def divided(tf: "object", gradients: "list", by: "float") -> "list":
    """Return gradients, dense or sparse, divided by a number; unchanged where it is 1."""
    if by == 1:
        return gradients
    return [_with_values(tf, gradient, _values(tf, gradient) / by) for gradient in gradients]


def summed(tf: "object", gradient: "object") -> "object":
    """Return IndexedSlices with one slice for each word; any other gradient unchanged."""
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    words, indices = tf.unique(tf.reshape(gradient.indices, (-1,)))
    segment_sum = getattr(tf, "unsorted_segment_sum", None) or tf.math.unsorted_segment_sum
    values = segment_sum(gradient.values, indices, tf.shape(words)[0])
    return tf.IndexedSlices(values, words, gradient.dense_shape)


def _values(tf, gradient):
    return gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient


def _with_values(tf, gradient, values):
    """Return a gradient as dense or as sparse as ``gradient``, with other values."""
    if not isinstance(gradient, tf.IndexedSlices):
        return values
    return tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)


def _clip_each(tf, limit, gradients, rows):
    """Clip each canonical tensor to a norm, in whichever arrays its blocks are held."""
    squares, pieces = {}, {}
    for name, gradient in gradients.items():
        sizes = [size for _, size in rows[name]]
        pieces[name] = tf.split(gradient, sizes) if len(sizes) > 1 else [_values(tf, gradient)]
        for (canonical, _), piece in zip(rows[name], pieces[name]):
            squares.setdefault(canonical, []).append(tf.reduce_sum(tf.square(piece)))
    scales = {name: limit / tf.maximum(tf.sqrt(tf.add_n(parts)), limit) for name, parts in squares.items()}
    scaled = {}
    for name, gradient in gradients.items():
        blocks = [piece * scales[canonical] for (canonical, _), piece in zip(rows[name], pieces[name])]
        scaled[name] = _with_values(tf, gradient, tf.concat(blocks, 0) if len(blocks) > 1 else blocks[0])
    return scaled
