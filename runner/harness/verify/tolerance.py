"""Compares the outputs, losses and gradients of an implementation with the reference, within a tolerance by precision."""

import math

import numpy

from .reference import STEPS
from ..errors import CellFailure

TOLERANCES = {
    "fp32": (1e-5, 1e-3, 1e-3),
    "tf32": (1e-2, 1e-2, 1e-2),
    "fp16": (5e-4, 4e-3, 2e-3),
    "bf16": (4e-3, 3e-2, 2e-2),
    "int8": (0.0, 0.0, 0.0),
}
"""Precision -> the largest relative error of a loss, and the largest errors of a gradient and of the outputs, as shares of
the norm.

In 16 bits these are 1, 8 and 4 to 5 times the unit roundoff u, 2^-11 in fp16 and 2^-8 in bf16 (Higham 2002, Accuracy
and Stability of Numerical Algorithms, section 2.1). Weights, inputs and states are rounded by up to u each; the roundings of
the terms of a product are independent, so that its relative error stays near u whatever its length, and that of the
states, which forget. A gradient passes through the rounded states twice. Losses average over all outputs. Measured with
PyTorch 1.12 and 2.13 on a CPU, on twelve shipped cases: 0.4 u, 3.6 u and 1.6 u; on networks of five units, which average
less, up to 1.2 u, 9.5 u and 7.4 u for one seed in four.
"""
RELU_GRADIENTS = {"fp16": 4e-2, "bf16": 1e-1}
"""Precision -> what TOLERANCES has of a gradient, for networks of max(0, x): 2 sqrt(u).

A rounding error turns a unit on or off where its sum is within the error of zero, a share of about u of all units. The
gradient jumps there, and a share u of jumps is sqrt(u) of its norm.
"""
# precision -> the same of sums of an operation's result; right ones are within 3e-7, 4e-4, 4e-4 and 3e-3
OPERATIONS = {"fp32": 1e-4, "tf32": 2e-3, "fp16": 2e-3, "bf16": 2e-2, "int8": 0.0}
COLUMN_FACTOR = 10  # times that tolerance is allowed for the sums of one column, as a share of an average column
LEFT_OUT = 0.3  # of a forward pass; training took 1.5 times one at least wherever it was measured, and 0.002 where not
TURNS = 7


def allowed(kind: "str", precision: "str", cell: "str | None" = None) -> "float":
    """Return the largest error that passes in a network: of a ``loss``, a ``gradient`` or ``forward``, the outputs.

    Args:
        kind: of error.
        precision: a key of TOLERANCES.
        cell: of the network, which concerns gradients; None where it is unknown.
    """
    if kind == "gradient" and cell == "relu" and precision in RELU_GRADIENTS:
        return RELU_GRADIENTS[precision]
    return TOLERANCES[precision][("loss", "gradient", "forward").index(kind)]


def relative(value: "object", reference: "object") -> "float":
    """Return the norm of the difference over the norm of the reference; the norm itself where the reference is 0."""
    value, reference = numpy.asarray(value, numpy.float64), numpy.asarray(reference, numpy.float64)
    if value.shape != reference.shape:
        return float("inf")
    scale = float(numpy.sqrt((reference ** 2).sum()))
    return float(numpy.sqrt(((value - reference) ** 2).sum())) / (scale or 1.0)


def without_padding(outputs: "object", reference: "dict") -> "tuple":
    """Return (outputs, the reference's), both with zeros behind each sample's own end."""
    lengths = reference.get("lengths")
    if lengths is None or numpy.shape(outputs) != numpy.shape(reference["outputs"]):
        return outputs, reference["outputs"]
    padding = (numpy.arange(len(outputs))[:, None] >= numpy.asarray(lengths))[:, :, None]
    return numpy.where(padding, 0, outputs), numpy.where(padding, 0, reference["outputs"])


def same_computation(program: "object", reference: "dict", precision: "str") -> "dict":
    """Run ``program`` forward and train it for three steps, both from the canonical weights; return losses and errors.

    Args:
        program: an Implementation.
        reference: ``loss``, ``gradients`` and ``outputs``; ``lengths`` (B,) where samples have their own; ``cell`` of
            the network.
        precision: a key of TOLERANCES.

    Raises:
        CellFailure: ``nan`` where a loss, gradient or output is not finite, ``wrong-result`` where they differ.
    """
    program.reset()
    outputs = program.outputs()
    gradients = program.gradients()
    program.reset()
    program.train()
    facts = training_losses(program, reference)
    same_gradients(gradients, reference, precision, facts)
    same_losses(precision, facts)
    same_outputs(outputs, reference, precision, facts)
    return facts


def same_training(program: "object", reference: "dict", precision: "str") -> "dict":
    """Train ``program``, which has made its first step, for the STEPS of the reference; return losses and their error.

    All losses but the first depend on every gradient and on the optimiser.

    Raises:
        CellFailure: as ``same_computation``.
    """
    facts = training_losses(program, reference)
    same_losses(precision, facts)
    return facts


def training_losses(program: "object", reference: "dict") -> "dict":
    """Return the losses of STEPS steps, of which the program has made the first, and those of the reference."""
    losses = [float(program.loss())]
    while len(losses) < STEPS:
        program.train()
        losses.append(float(program.loss()))
    error = max(abs(a - b) / (abs(b) or 1.0) for a, b in zip(losses, reference["loss"]))
    return {"loss": losses, "reference_loss": reference["loss"], "loss_error": error}


def same_losses(precision: "str", facts: "dict") -> "None":
    """Raise CellFailure where the losses are not finite, or off by more than the tolerance."""
    check_finite("a loss", facts["loss"], facts)
    limit = allowed("loss", precision)
    if facts["loss_error"] > limit:
        text = "losses are off by {:.1e}, {:.0e} allowed"
        raise CellFailure("wrong-result", text.format(facts["loss_error"], limit), facts)


def same_gradients(gradients: "dict", reference: "dict", precision: "str", facts: "dict") -> "None":
    """Compare the gradient of each weight, and add the errors to ``facts`` as ``gradient_errors``.

    Raises:
        CellFailure: as ``same_computation``; it has the ``facts``.
    """
    expected = reference["gradients"]
    errors = {name: relative(gradients.get(name, ()), expected[name]) for name in expected}
    facts["gradient_errors"] = errors
    for name in sorted(errors):
        shape, expected_shape = numpy.shape(gradients.get(name, ())), numpy.shape(expected[name])
        if shape != expected_shape:
            text = "the gradient of {} has the shape {}, not {}"
            raise CellFailure("wrong-result", text.format(name, shape, expected_shape), facts)
    check_finite("a gradient", list(errors.values()), facts)
    worst, limit = max(sorted(errors), key=errors.get), allowed("gradient", precision, reference.get("cell"))
    if errors[worst] > limit:
        text = "the gradient of {} is off by {:.1e} of its norm, {:.0e} allowed"
        raise CellFailure("wrong-result", text.format(worst, errors[worst], limit), facts)


def same_outputs(
    outputs: "object",
    reference: "dict",
    precision: "str",
    facts: "dict",
    when: "str" = "",
    what: "str" = "forward pass",
    limit: "float | None" = None
) -> "None":
    """Compare outputs at the canonical weights, and add the error to ``facts`` as ``forward_error``.

    Args:
        outputs: of the program.
        reference: ``outputs``; ``lengths`` (B,) where samples have their own.
        precision: a key of TOLERANCES.
        facts: go into a failure.
        when: goes into its reason, `` after the timing`` for example.
        what: was compared; goes into its reason.
        limit: the largest error; by default that of the outputs of a network.

    Raises:
        CellFailure: as ``same_computation``.
    """
    error = relative(*without_padding(outputs, reference))
    facts["forward_error"] = error
    shape, expected_shape = numpy.shape(outputs), numpy.shape(reference["outputs"])
    if shape != expected_shape:
        text = "the {} has the shape {}, not {}{}"
        raise CellFailure("wrong-result", text.format(what, shape, expected_shape, when), facts)
    if math.isnan(error) or math.isinf(error):
        raise CellFailure("nan", "a number of the {} is not finite{}".format(what, when), facts)
    limit = allowed("forward", precision) if limit is None else limit
    if not error <= limit:
        text = "the {} is off by {:.1e} of its norm{}, {:.0e} allowed"
        raise CellFailure("wrong-result", text.format(what, error, when, limit), facts)


def same_sums(sums: "object", expected: "object", precision: "str", facts: "dict", when: "str" = "") -> "None":
    """Compare sums (rows, columns...) of an operation's result; add their error to ``facts`` as ``forward_error``.

    All together, and each column by itself: a few columns that were never written weigh little in a large result.

    Raises:
        CellFailure: as ``same_outputs``.
    """
    limit = OPERATIONS[precision]
    same_outputs(sums, {"outputs": expected}, precision, facts, when, "result", limit)
    sums, expected = (numpy.asarray(array, numpy.float64).reshape(len(array), -1) for array in (sums, expected))
    scale = float(numpy.sqrt((expected ** 2).sum(0).mean())) or 1.0
    worst = float(numpy.sqrt(((sums - expected) ** 2).sum(0)).max()) / scale
    if facts["forward_error"] > limit or worst > COLUMN_FACTOR * limit:
        text = "the result is off by {:.1e} of its norm, at one place by {:.1e}{}, {:.0e} allowed"
        raise CellFailure("wrong-result", text.format(facts["forward_error"], worst, when, limit), facts)


def check_step_is_complete(step: "object", forward: "object", facts: "dict") -> "None":
    """Raise CellFailure, class ``wrong-result``, where a step takes less than LEFT_OUT of the forward pass it contains.

    A busy machine makes one call ten times as long as the next, sometimes for seconds. So both are timed in turns, and
    each of the TURNS has to be too short.

    Args:
        step: makes a step and returns its seconds.
        forward: makes a forward pass and returns its seconds.
        facts: go into the failure.
    """
    for turn in range(TURNS):
        step_seconds, forward_seconds = step(), forward()
        if step_seconds >= LEFT_OUT * forward_seconds:
            return
        if turn == TURNS - 1:
            text = "a step takes {:.2g} s and a forward pass alone {:.2g} s: something was left out"
            raise CellFailure("wrong-result", text.format(step_seconds, forward_seconds), facts)


def check_finite(what: "str", values: "object", facts: "dict") -> "None":
    """Raise CellFailure, class ``nan``, where a value is not finite; ``what`` is named in its reason."""
    if not numpy.isfinite(values).all():
        raise CellFailure("nan", "{} is not finite".format(what), facts)
