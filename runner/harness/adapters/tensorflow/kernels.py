"""Single operations in TensorFlow, the same for 1.x (``v1.program``) and 2.x (``v2.program``)."""

from ...cases.operation import as_int8
from .. import kernel
from ..driven import OnEngine
from . import int8, runtime

TYPES = {"fp32": "float32", "tf32": "float32", "fp16": "float16", "bf16": "bfloat16", "int8": "uint8"}
"""Precision -> the type of the held arrays."""


def product(factors, multiply):
    """Return (arrays, passes) of a product of the factors of ``kernel.Gemm.factors``; ``multiply`` is ``tf.matmul``."""
    left, left_turned, right, right_turned = factors

    def matmul(held):
        return multiply(held["left"], held["right"], transpose_a=left_turned, transpose_b=right_turned)

    return {"left": left, "right": right}, {"forward": matmul}


def same(size, width, stride, edge):
    """Return True if TensorFlow's padding SAME adds ``edge`` zeros on both sides."""
    outputs = -(-size // stride)
    padding = max((outputs - 1) * stride + width - size, 0)
    return outputs == 1 + (size - width + 2 * edge) // stride and padding == 2 * edge


class Layout(object):
    """The layout of a convolution's arrays: NCHW on a GPU; NHWC on a CPU, which has no kernels for the other."""

    def __init__(self, cuda: "bool") -> "None":
        """Choose by the device."""
        self.name = "NCHW" if cuda else "NHWC"
        self.cuda = cuda

    def convert(self, data: "dict") -> "dict":
        """Return canonical arrays in this layout; filters are (r, s, c, k) on any device."""
        arrays = {name: array if self.cuda else array.transpose(0, 2, 3, 1) for name, array in data.items()}
        return dict(arrays, filters=data["filters"].transpose(2, 3, 1, 0))

    def revert(self, phase: "str", result: "object") -> "object":
        """Return a result in the canonical layout."""
        if phase == "backward-weights":
            return result.transpose(3, 2, 0, 1)
        return result if self.cuda else result.transpose(0, 3, 1, 2)

    def around(self, down: "object", along: "object", edge: "object") -> "list":
        """Return a list for all axes: ``down`` for height, ``along`` for width, ``edge`` for the others."""
        return [edge, edge, down, along] if self.cuda else [edge, down, along, edge]


def padding(case: "dict", layout: "Layout", geometry: "tuple", explicit: "bool") -> "tuple":
    """Return (the padding that a convolution is given, by how much a separate operation pads before it, or None).

    Args:
        case: the sizes.
        layout: of the inputs.
        geometry: ((vertical stride, horizontal stride), (vertical padding, horizontal padding)).
        explicit: whether the convolution takes numbers; without them, SAME does where it pads as the case does.
    """
    (down, along), (above, left) = geometry
    edges = layout.around([above, above], [left, left], [0, 0])
    if not (above or left):
        return "VALID", None
    if same(case["h"], case["filter_h"], down, above) and same(case["w"], case["filter_w"], along, left):
        return "SAME", None
    return (edges, None) if explicit else ("VALID", edges)


def takes_numbers() -> "bool":
    """Return whether ``nn.conv2d`` takes the padding in numbers; its first release that does is 1.14."""
    import tensorflow as tf

    return tuple(int(part) for part in tf.__version__.split(".")[:2]) >= (1, 14)


def convolution(case: "dict", layout: "Layout", geometry: "tuple", conv2d: "object", zero: "int") -> "dict":
    """Return the passes of a convolution by ``conv2d``, as ``tf.nn.conv2d``, of numbers whose zero is held as ``zero``.

    On a GPU, cuDNN takes equal padding on both sides in numbers. On a CPU, oneDNN does not take it (tensorflow#28382):
    TensorFlow then computes without oneDNN, while it merges a separate padding with oneDNN's convolution.
    """
    import tensorflow as tf

    strides = layout.around(geometry[0][0], geometry[0][1], 1)
    built_in, edges = padding(case, layout, geometry, layout.cuda and takes_numbers())

    def conv(x, filters):
        padded = x if edges is None else tf.pad(x, edges, constant_values=zero)
        return conv2d(padded, filters, strides=strides, padding=built_in, data_format=layout.name)

    def backward(name):
        def gradient(held):
            factors = [held["x"], held["filters"]]
            return tf.gradients(conv(*factors), [held[name]], grad_ys=[held["slope"]])[0]

        return gradient

    forward = {"forward": lambda held: conv(held["x"], held["filters"])}
    return dict(forward, **{"backward-weights": backward("filters"), "backward-inputs": backward("x")})


class Operation(OnEngine):
    """What single operations share: the program of the installed version computes their phases.

    TF32 came with 2.4. On a CPU, 1.x sums products of fp16 in fp16, and some later releases have no bf16; so both are
    measured there from the release on that was tested. Int8 has kernels for a CPU alone.
    """

    able = {
        "cpu": {"fp32": (0,), "fp16": (2, 21), "bf16": (2, 21), "int8": (0,)},
        "cuda": {"fp32": (0,), "tf32": runtime.TF32_SINCE, "fp16": (0,), "bf16": (2, 4)},
    }

    def build(self, arrays, passes, device, precision):
        """Make the program of ``passes``, phase -> f(held arrays by name) -> tensor."""
        settings = dict(runtime.SETTINGS, device=device, precision=precision, type=TYPES[precision])
        self.engine = runtime.program_module().Program(arrays, passes, settings)
        self.calls = {phase: self.engine.caller(phase) for phase in passes}

    def forward(self):
        self.calls["forward"]()

    def result(self, phase):
        return self.engine.result(phase)


class DenseMatmul(Operation, kernel.DenseProduct):
    """``tf.matmul`` of dense tensors."""

    def __init__(self, case, data, weights, device, precision):
        import tensorflow as tf

        self.build(data, {"forward": lambda held: tf.matmul(held["s"], held["b"])}, device, precision)


class CooMatmul(Operation, kernel.CooProduct):
    """``tf.sparse_tensor_dense_matmul``, which 2.x calls ``tf.sparse.sparse_dense_matmul``."""

    def __init__(self, case, data, weights, device, precision):
        import tensorflow as tf

        multiply = getattr(tf, "sparse_tensor_dense_matmul", None) or tf.sparse.sparse_dense_matmul

        def product(held):
            return multiply(tf.SparseTensor(held["indices"], held["values"], data["s"].shape), held["b"])

        indices, values = self.coordinates(data["s"])
        self.build({"indices": indices, "values": values, "b": data["b"]}, {"forward": product}, device, precision)


class Matmul(Operation, kernel.Gemm):
    """``tf.matmul``, whose own arguments transpose the factors."""

    def __init__(self, case, data, weights, device, precision):
        import tensorflow as tf

        left, left_turned, right, right_turned = self.factors(case, data, precision)
        multiply = tf.matmul
        if precision == "int8":
            left, right, multiply = int8.shifted(left), int8.shifted(right), int8.matmul
        arrays, passes = product((left, left_turned, right, right_turned), multiply)
        self.build(arrays, passes, device, precision)


class Conv2d(Operation, kernel.Conv):
    """``nn.conv2d``, and its ``tf.gradients``, which compute the given gradient alone; in int8 the quantised one."""

    @classmethod
    def lacks(cls, case, release, device, precision):
        """See Implementation; also, the quantised one has one stride for both axes."""
        skip = super(Conv2d, cls).lacks(case, release, device, precision)
        if skip is None and precision == "int8" and case["stride_w"] != case["stride_h"]:
            return "precision-lacks", "TensorFlow's int8 convolution requires equal strides"
        return skip

    def __init__(self, case, data, weights, device, precision):
        import tensorflow as tf

        self.layout = Layout(device == "cuda")
        conv2d, zero = tf.nn.conv2d, 0
        if precision == "int8":
            held = as_int8(data)
            data = {name: int8.shifted(held[name]) for name in held}
            conv2d, zero = int8.conv2d, int8.ZERO
        passes = convolution(case, self.layout, self.geometry(case), conv2d, zero)
        timed = {phase: passes[phase] for phase in case["phases"]}
        self.build(self.layout.convert(data), timed, device, precision)

    def backward_weights(self):
        self.calls["backward-weights"]()

    def backward_inputs(self):
        self.calls["backward-inputs"]()

    def result(self, phase):
        return self.layout.revert(phase, self.engine.result(phase))


OPERATIONS = (Matmul, Conv2d, CooMatmul, DenseMatmul)
