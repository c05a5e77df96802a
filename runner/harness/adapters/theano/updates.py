"""Clipping and optimisers in Theano, which has neither."""

from collections import OrderedDict

from ...cases import adam


def clipped(case, gradients, groups):
    """Return gradients by name, clipped as the case says: each value, then the norm of each group, then of all.

    Args:
        case: ``clip_value``, ``clip_each`` and ``clip_norm``.
        gradients: by name.
        groups: lists of names; the gradients of a group belong to one canonical array.
    """
    import theano.tensor as T

    gradients = OrderedDict(gradients)
    if case["clip_value"]:
        limit = case["clip_value"]
        gradients = OrderedDict((name, T.clip(gradient, -limit, limit)) for name, gradient in gradients.items())
    for limit, members in ((case["clip_each"], groups), (case["clip_norm"], [list(gradients)])):
        for names in members if limit else ():
            norm = T.sqrt(sum(T.sqr(gradients[name]).sum() for name in names))
            scale = T.minimum(1, limit / T.maximum(norm, 1e-30))
            gradients.update((name, gradients[name] * T.cast(scale, "float32")) for name in names)
    return gradients


def optimizer(case, weights, gradients):
    """Return (the optimiser's variables, updates) of one training step.

    Adam is algorithm 1 of Kingma and Ba 2015, written out: Theano has no optimisers, and ``lasagne.updates.adam`` adds
    its epsilon to the square root of the uncorrected second moment.
    """
    import numpy
    import theano
    import theano.tensor as T

    if case["optimizer"] == "sgd":
        return [], [(weights[name], weights[name] - case["rate"] * gradients[name]) for name in weights]
    beta1, beta2, epsilon = adam.BETA1, adam.BETA2, adam.EPSILON
    count = theano.shared(numpy.zeros((), numpy.float64))  # in single precision, 1 - 0.999 has an error of 5e-5
    step = count + 1
    corrections = [T.cast(1 - beta ** step, "float32") for beta in (beta1, beta2)]
    variables, updates = [count], [(count, step)]
    for name, weight in weights.items():
        first, second = (theano.shared(numpy.zeros(weight.get_value(borrow=True).shape, numpy.float32)) for _ in "12")
        new_first = beta1 * first + (1 - beta1) * gradients[name]
        new_second = beta2 * second + (1 - beta2) * T.sqr(gradients[name])
        scale = T.sqrt(new_second / corrections[1]) + epsilon
        change = case["rate"] * (new_first / corrections[0]) / scale
        variables += [first, second]
        updates += [(first, new_first), (second, new_second), (weight, weight - change)]
    return variables, updates
