"""The optimisers of a case, in the library that users of each version take.

These are ``tf.train`` in 1.x (one kernel for the update of each variable) and Keras in 2.x (several operations). Their
Adam adds its epsilon to the square root of the uncorrected second moment ("epsilon hat" at the end of section 2 in
Kingma and Ba 2015), the reference adds it to that of the corrected one: the same 1e-8 is 32 times as much in the first
step, and shows in the losses (1.3e-4 on 1x320-ce-short). EPSILON equals 1e-8 in the first step; in later steps the
difference is below single precision.
"""

from ...cases import adam

EPSILON = adam.EPSILON * (1 - adam.BETA2) ** 0.5
NAMES = {"adam": ("Adam", "AdamOptimizer"), "sgd": ("SGD", "GradientDescentOptimizer")}


def make(library: "object", case: "dict", epsilon: "float") -> "object":
    """Return the optimiser of a case with its rate.

    Args:
        library: ``tf.train`` of 1.x, ``tf.keras.optimizers`` or ``keras.optimizers``.
        case: ``optimizer`` and ``rate``.
        epsilon: Adam's.
    """
    keras_name, train_name = NAMES[case["optimizer"]]
    kind = getattr(library, keras_name, None) or getattr(library, train_name)
    options = {"epsilon": epsilon} if case["optimizer"] == "adam" else {}
    return kind(case["rate"], **options)
