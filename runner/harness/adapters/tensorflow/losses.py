"""From hidden states to a loss, and from gradients to what the optimiser gets: the same operations in 1.x and 2.x."""


def logits(tf: "object", case: "dict", hidden: "object", last: "object", weights: "dict") -> "object":
    """Return what a network says: see the table of ``api``.

    Args:
        tf: the module.
        case: loss and sizes.
        hidden: every hidden state of the top layer, (T, B, D*H); not looked at where only the last one counts.
        last: the hidden state of the last step, (B, D*H).
        weights: ``output/kernel`` (D*H, C) and ``output/bias`` (C,) where the case has them.
    """
    found = last if case["loss"] in ("mse", "ce") else hidden
    if case["loss"] == "bce":
        found = tf.reduce_mean(hidden, 0)
    if not case["classes"]:
        return found
    if case["loss"] in ("ctc", "lm"):
        found = tf.reshape(found, (case["steps"] * case["batch"], -1))
    found = tf.matmul(found, weights["output/kernel"])
    if case["output_bias"]:
        found = tf.nn.bias_add(found, weights["output/bias"])
    if case["loss"] in ("ctc", "lm"):
        found = tf.reshape(found, (case["steps"], case["batch"], case["classes"]))
    return found


def mean_loss(tf: "object", case: "dict", found: "object", held: "dict", ctc: "object") -> "object":
    """Return the loss of what ``logits`` found.

    Args:
        tf: the module.
        case: the loss.
        found: what ``logits`` returned.
        held: ``target``, and ``lengths`` where samples have their own.
        ctc: a function of (logits, labels, lengths) that returns the CTC loss of each sample.
    """
    target = held["target"]
    if case["loss"].startswith("mse"):
        return tf.reduce_mean(tf.square(found - target))
    if case["loss"] == "bce":
        target = tf.reshape(target, (case["batch"], 1))
        return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=target, logits=found))
    if case["loss"] == "ctc":
        return tf.reduce_mean(ctc(found, target, held["lengths"]))
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=target, logits=found))


def sparse(tf: "object", labels: "object") -> "object":
    """Return labels (B, N), all of which count, as ``nn.ctc_loss`` wants them."""
    import numpy

    shape = labels.shape.as_list()
    places = numpy.indices(shape).reshape(2, -1).T
    return tf.SparseTensor(places, tf.reshape(labels, (-1,)), shape)


def clipped(tf: "object", case: "dict", slopes: "dict", rows: "dict") -> "dict":
    """Return gradients by held name, cut as the case wants it, as dense or as sparse as they were.

    Those of an embedding are IndexedSlices, with as many slices for a word as there are places where it stands.
    TensorFlow's clipping looks at each slice for itself, so its norm is another than the gradient's: slices of one word
    are summed first.

    Args:
        tf: the module.
        case: ``clip_value``, ``clip_each`` and ``clip_norm``.
        slopes: gradients by held name.
        rows: held name -> [(canonical name, rows)], for ``clip_each`` cuts canonical tensors.
    """
    if not (case["clip_value"] or case["clip_each"] or case["clip_norm"]):
        return slopes
    found = {name: summed(tf, slope) for name, slope in slopes.items()}
    if case["clip_value"]:
        limit = case["clip_value"]
        cut = {name: tf.clip_by_value(_values(tf, slope), -limit, limit) for name, slope in found.items()}
        found = {name: _holding(tf, slope, cut[name]) for name, slope in found.items()}
    if case["clip_each"]:
        found = _clip_each(tf, case["clip_each"], found, rows)
    if case["clip_norm"]:
        names = sorted(found)
        cut, _ = tf.clip_by_global_norm([found[name] for name in names], case["clip_norm"])
        found = dict(zip(names, cut))
    return found


def summed(tf: "object", slope: "object") -> "object":
    """Return IndexedSlices with one slice for each word; any other gradient as it is."""
    if not isinstance(slope, tf.IndexedSlices):
        return slope
    words, places = tf.unique(tf.reshape(slope.indices, (-1,)))
    segment_sum = getattr(tf, "unsorted_segment_sum", None) or tf.math.unsorted_segment_sum
    values = segment_sum(slope.values, places, tf.shape(words)[0])
    return tf.IndexedSlices(values, words, slope.dense_shape)


def _values(tf, slope):
    return slope.values if isinstance(slope, tf.IndexedSlices) else slope


def _holding(tf, slope, values):
    """Return a gradient as dense or as sparse as ``slope``, with other values."""
    return tf.IndexedSlices(values, slope.indices, slope.dense_shape) if isinstance(slope, tf.IndexedSlices) else values


def _clip_each(tf, limit, slopes, rows):
    """Cut each canonical tensor to a norm, wherever its blocks are held."""
    squares, pieces = {}, {}
    for name, slope in slopes.items():
        sizes = [size for _, size in rows[name]]
        pieces[name] = tf.split(slope, sizes) if len(sizes) > 1 else [_values(tf, slope)]
        for (canonical, _), piece in zip(rows[name], pieces[name]):
            squares.setdefault(canonical, []).append(tf.reduce_sum(tf.square(piece)))
    shares = {name: limit / tf.maximum(tf.sqrt(tf.add_n(parts)), limit) for name, parts in squares.items()}
    found = {}
    for name, slope in slopes.items():
        cut = [piece * shares[canonical] for (canonical, _), piece in zip(rows[name], pieces[name])]
        found[name] = _holding(tf, slope, tf.concat(cut, 0) if len(cut) > 1 else cut[0])
    return found
