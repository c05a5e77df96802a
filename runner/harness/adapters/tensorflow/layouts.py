"""How TensorFlow stores canonical weights, as data: each held array stacks canonical blocks along its first axis.

``cells``: an LSTM or a plain RNN has one ``kernel`` (I+H, G*H), the rows of x above those of h, and one ``bias``
(G*H,), an LSTM's gates in the order i, g (TensorFlow's documents say j or ci), f, o. The cells add the forget bias
themselves in every step, so it is subtracted from the stored bias. A GRU is stored as ``contrib.cudnn_rnn``'s
CudnnCompatibleGRUCell does: ``gates`` for r and z, and for n an ``input_projection`` and a ``hidden_projection``.

``cudnn``: one flat buffer, ``params``. For each layer and direction, in the order of the canonical names, the
transposed matrices of x, then of h; after all of these, for each layer and direction, its biases and as many zeros,
which are cuDNN's second biases. Gates are in the canonical order: i, f, g, o in an LSTM, r, z, n in a GRU (cuDNN's
documents call them r, i, h'). cuDNN's documents call the layout opaque and give access matrix by matrix; this is the
layout of its standard algorithm, as in ``_cudnn_lstm`` and ``_cudnn_gru`` of keras/src/backend/tensorflow/rnn.py.
"""

from ...cases import recurrent
from ..base import gates

CANONICAL = {"lstm": "ifgo", "gru": "rzn", "rnn": "h", "relu": "h"}
STORED = {"lstm": "igfo", "rnn": "h", "relu": "h"}


def held(case: "dict", layout: "str") -> "dict":
    """Return held name -> [(canonical name, gates)]: the blocks of each held array, from its first row to its last.

    The gates of a block are the columns of its canonical array that it has, in its order; empty where it is the
    entire array, unchanged. A block without a canonical name is zero and never trained.

    Args:
        case: cell, layers and directions.
        layout: ``cells`` or ``cudnn``.
    """
    names = ["layer{}{}".format(k, way) for k in range(case["layers"]) for way in recurrent.ways(case)]
    blocks = {name: [(name, "")] for name, _ in recurrent.shapes(case) if not name.startswith("layer")}
    if layout == "cudnn":
        order = CANONICAL[case["cell"]]
        matrices = [(name + part, order) for name in names for part in ("kernel", "recurrent")]
        biases = [bias for name in names for bias in ((name + "bias", order), (None, order))]
        blocks["params"] = matrices + biases
        return blocks
    for name in names:
        blocks.update(_gru(name) if case["cell"] == "gru" else _plain(name, STORED[case["cell"]]))
    return blocks


def _plain(name, order):
    kernel = [(name + "kernel", order), (name + "recurrent", order)]
    return {name + "kernel": kernel, name + "bias": [(name + "bias", order)]}


def _gru(name):
    return {
        name + "gates/kernel": [(name + "kernel", "rz"), (name + "recurrent", "rz")],
        name + "gates/bias": [(name + "bias", "rz")],
        name + "input_projection/kernel": [(name + "kernel", "n")],
        name + "input_projection/bias": [(name + "bias", "n")],
        name + "hidden_projection/kernel": [(name + "recurrent", "n")],
    }


def rows(case: "dict", layout: "str") -> "dict":
    """Return held name -> [(canonical name, rows)]: how many rows of the held array each of its blocks has."""
    shapes = dict(recurrent.shapes(case))
    counts = {}
    for name, blocks in held(case, layout).items():
        counts[name] = [(canonical, _rows(case, shapes, layout, canonical, order)) for canonical, order in blocks]
    return counts


def _rows(case, shapes, layout, canonical, order):
    width = len(order) * case["hidden"]
    if canonical is None or (order and len(shapes[canonical]) == 1):
        return width
    return shapes[canonical][0] * (width if order and layout == "cudnn" else 1)


def untrained(sizes: "dict") -> "dict":
    """Return held name -> (row of the first block that is never trained, ones and zeros for the rows from there on).

    Args:
        sizes: see ``rows``.
    """
    import numpy

    factors = {}
    for name, blocks in sizes.items():
        trained = [canonical is not None for canonical, _ in blocks]
        if not all(trained):
            first = trained.index(False)
            ones = [numpy.full(count, canonical is not None, numpy.float32) for canonical, count in blocks[first:]]
            factors[name] = (sum(count for _, count in blocks[:first]), numpy.concatenate(ones))
    return factors


def convert(case: "dict", weights: "dict", layout: "str") -> "dict":
    """Return held name -> array from canonical weights.

    Args:
        case: cell, sizes and forget bias.
        weights: canonical arrays by name.
        layout: see ``held``.
    """
    import numpy

    weights = dict(weights)
    if case["cell"] == "lstm" and layout == "cells":
        for name in [name for name in weights if name.startswith("layer") and name.endswith("/bias")]:
            weights[name] = weights[name].copy()
            weights[name][case["hidden"] : 2 * case["hidden"]] -= numpy.float32(case["forget_bias"])
    arrays = {}
    for name, blocks in held(case, layout).items():
        arrays[name] = numpy.concatenate([_block(case, weights, layout, *block) for block in blocks])
    return arrays


def _block(case, weights, layout, canonical, order):
    import numpy

    if canonical is None:
        return numpy.zeros(len(order) * case["hidden"], numpy.float32)
    array = weights[canonical]
    if order:
        array = gates(array, order, CANONICAL[case["cell"]])
    return array.T.ravel() if order and layout == "cudnn" else array


def revert(case: "dict", arrays: "dict", layout: "str") -> "dict":
    """Return canonical name -> gradient from gradients in the layout of ``convert``."""
    import numpy

    canonical_arrays = {name: numpy.zeros(shape, numpy.float32) for name, shape in recurrent.shapes(case)}
    sizes = rows(case, layout)
    for name, blocks in held(case, layout).items():
        ends = numpy.cumsum([size for _, size in sizes[name]])[:-1]
        for piece, (canonical, order) in zip(numpy.split(arrays[name], ends), blocks):
            if canonical is not None:
                _put_back(case, canonical_arrays[canonical], piece, order)
    return canonical_arrays


def _put_back(case, target, piece, order):
    import numpy

    if not order:
        target[...] = piece
        return
    if piece.ndim < target.ndim:  # cuDNN's: flat and transposed
        piece = piece.reshape(target.shape[::-1]).T
    columns = numpy.split(target, len(CANONICAL[case["cell"]]), axis=-1)  # views
    for gate, gate_columns in zip(order, numpy.split(piece, len(order), axis=-1)):
        columns[CANONICAL[case["cell"]].index(gate)][...] = gate_columns
