"""Products and convolutions of int8 in TensorFlow: uint8 with its zero at 128, summed in int32; on a CPU alone."""

ZERO = 128
ENDS = (-128.0, 127.0)  # the values of 0 and 255: steps of 1, and a zero at 128


def shifted(array: "object") -> "object":
    """Return int8 as uint8, its zero at ZERO."""
    import numpy

    return (array.astype(numpy.int16) + ZERO).astype(numpy.uint8)


def _eight(tensor):
    import tensorflow as tf

    return tf.bitcast(tensor, tf.quint8)


def matmul(left: "object", right: "object", transpose_a: "bool", transpose_b: "bool") -> "object":
    """Return the int32 product of tensors of ``shifted`` numbers; the operation has no public name in 1.8."""
    import tensorflow as tf
    from tensorflow.python.ops import gen_math_ops

    options = {"transpose_a": transpose_a, "transpose_b": transpose_b}
    results = gen_math_ops.quantized_mat_mul(_eight(left), _eight(right), *(ENDS + ENDS), **options)
    return tf.bitcast(results[0], tf.int32)


def conv2d(x: "object", filters: "object", strides: "list", padding: "str", data_format: "str") -> "object":
    """Return the int32 convolution of tensors of ``shifted`` numbers, in NHWC, the only ``data_format`` it takes."""
    import tensorflow as tf
    from tensorflow.python.ops import gen_nn_ops

    results = gen_nn_ops.quantized_conv2d(_eight(x), _eight(filters), *(ENDS + ENDS), strides=strides, padding=padding)
    return tf.bitcast(results[0], tf.int32)
