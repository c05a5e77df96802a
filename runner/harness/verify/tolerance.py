"""Does an implementation compute the same thing? Its outputs, losses and gradients against the reference."""

import math

import numpy

from .reference import STEPS

# precision -> (largest relative error of a loss, largest error of a gradient or of the outputs as a share of the norm)
TOLERANCES = {"fp32": (1e-5, 1e-3), "tf32": (1e-2, 1e-2), "fp16": (1e-2, 1e-2), "bf16": (5e-2, 5e-2), "int8": (0.0, 0.0)}
# precision -> the same of sums of an operation's result; right ones are within 3e-7, 4e-4, 4e-4 and 3e-3
OPERATIONS = {"fp32": 1e-4, "tf32": 2e-3, "fp16": 2e-3, "bf16": 2e-2, "int8": 0.0}
FURTHEST = 10  # times as far may the sums at one place be off, of what sums are in the mean
LEFT_OUT = 0.3  # of a forward pass; training took 1.5 times one at least wherever it was measured, and 0.002 where not
TURNS = 7


class Failure(Exception):
    """A cell that ends without a time: its class and a sentence; ``found`` is what was learnt before."""

    def __init__(self, kind, reason, found=None):
        Exception.__init__(self, reason)
        self.kind = kind
        self.reason = reason
        self.found = found or {}


def relative(value: "object", truth: "object") -> "float":
    """Return the norm of the difference over the norm of the truth; the norm itself where the truth is 0."""
    value, truth = numpy.asarray(value, numpy.float64), numpy.asarray(truth, numpy.float64)
    if value.shape != truth.shape:
        return float("inf")
    scale = float(numpy.sqrt((truth ** 2).sum()))
    return float(numpy.sqrt(((value - truth) ** 2).sum())) / (scale or 1.0)


def counted(outputs: "object", truth: "dict") -> "tuple":
    """Return (outputs, the reference's) with zeros for what either says behind a sample's own end."""
    lengths = truth.get("lengths")
    if lengths is None or numpy.shape(outputs) != numpy.shape(truth["outputs"]):
        return outputs, truth["outputs"]
    behind = (numpy.arange(len(outputs))[:, None] >= numpy.asarray(lengths))[:, :, None]
    return numpy.where(behind, 0, outputs), numpy.where(behind, 0, truth["outputs"])


def same_computation(program: "object", truth: "dict", precision: "str") -> "dict":
    """Run ``program`` forward and train it for three steps, both from the canonical weights; return losses and errors.

    Args:
        program: an Implementation.
        truth: ``loss``, ``gradients`` and ``outputs`` of the reference; ``lengths`` (B,) where samples have their own.
        precision: names the row of TOLERANCES.

    Raises:
        Failure: ``nan`` where a loss, gradient or output is not finite, ``wrong-result`` where they disagree.
    """
    program.reset()
    outputs = program.outputs()
    slopes = program.gradients()
    program.reset()
    program.train()
    found = trained(program, truth)
    same_gradients(slopes, truth, precision, found)
    same_losses(precision, found)
    same_outputs(outputs, truth, precision, found)
    return found


def same_training(program: "object", truth: "dict", precision: "str") -> "dict":
    """Let ``program``, which has made its first step, go on to the STEPS of the reference; return losses and their error.

    All but the first depend on every gradient and on the optimiser.

    Raises:
        Failure: as ``same_computation``.
    """
    found = trained(program, truth)
    same_losses(precision, found)
    return found


def trained(program: "object", truth: "dict") -> "dict":
    """Return the losses of STEPS steps, of which the program has made the first, beside the reference's."""
    losses = [float(program.loss())]
    while len(losses) < STEPS:
        program.train()
        losses.append(float(program.loss()))
    error = max(abs(a - b) / (abs(b) or 1.0) for a, b in zip(losses, truth["loss"]))
    return {"loss": losses, "reference_loss": truth["loss"], "loss_error": error}


def same_losses(precision: "str", found: "dict") -> "None":
    """Raise Failure where the losses are not finite, or off by more than a precision allows."""
    finite("a loss", found["loss"], found)
    limit = TOLERANCES[precision][0]
    if found["loss_error"] > limit:
        text = "losses are off by {:.1e}, {:.0e} allowed"
        raise Failure("wrong-result", text.format(found["loss_error"], limit), found)


def same_gradients(gradients: "dict", truth: "dict", precision: "str", found: "dict") -> "None":
    """Compare the gradient of each weight, and keep the errors in ``found`` as ``gradient_errors``.

    Raises:
        Failure: as ``same_computation``; ``found`` goes with it.
    """
    errors = {name: relative(gradients.get(name, ()), truth["gradients"][name]) for name in truth["gradients"]}
    found["gradient_errors"] = errors
    for name in sorted(errors):
        shape, wanted = numpy.shape(gradients.get(name, ())), numpy.shape(truth["gradients"][name])
        if shape != wanted:
            raise Failure("wrong-result", "the gradient of {} has the shape {}, not {}".format(name, shape, wanted), found)
    finite("a gradient", list(errors.values()), found)
    worst, limit = max(sorted(errors), key=errors.get), TOLERANCES[precision][1]
    if errors[worst] > limit:
        text = "the gradient of {} is off by {:.1e} of its norm, {:.0e} allowed"
        raise Failure("wrong-result", text.format(worst, errors[worst], limit), found)


def same_outputs(
    outputs: "object", truth: "dict", precision: "str", found: "dict", when: "str" = "", what: "str" = "forward pass"
) -> "None":
    """Compare what the network said at the canonical weights, and keep the error in ``found`` as ``forward_error``.

    Raises:
        Failure: as ``same_computation``; ``what`` was compared and ``when`` go into its sentence, and ``found`` with it.
    """
    error = relative(*counted(outputs, truth))
    found["forward_error"] = error
    shape, wanted = numpy.shape(outputs), numpy.shape(truth["outputs"])
    if shape != wanted:
        raise Failure("wrong-result", "the {} has the shape {}, not {}{}".format(what, shape, wanted, when), found)
    if math.isnan(error) or math.isinf(error):
        raise Failure("nan", "a number of the {} is not finite{}".format(what, when), found)
    limit = TOLERANCES[precision][1]
    if not error <= limit:
        text = "the {} is off by {:.1e} of its norm{}, {:.0e} allowed"
        raise Failure("wrong-result", text.format(what, error, when, limit), found)


def same_sums(sums: "object", truth: "object", precision: "str", found: "dict", when: "str" = "") -> "None":
    """Compare sums (rows, places...) of an operation's result; keep their error in ``found`` as ``forward_error``.

    As a whole, and at each place by itself: a few columns that nobody has written are little beside a large result.

    Raises:
        Failure: as ``same_outputs``.
    """
    limit = OPERATIONS[precision]
    same_outputs(sums, {"outputs": truth}, precision, found, when, "result")
    sums, truth = (numpy.asarray(one, numpy.float64).reshape(len(one), -1) for one in (sums, truth))
    usual = float(numpy.sqrt((truth ** 2).sum(0).mean())) or 1.0
    furthest = float(numpy.sqrt(((sums - truth) ** 2).sum(0)).max()) / usual
    if found["forward_error"] > limit or furthest > FURTHEST * limit:
        text = "the result is off by {:.1e} of its norm, at one place by {:.1e}{}, {:.0e} allowed"
        raise Failure("wrong-result", text.format(found["forward_error"], furthest, when, limit), found)


def as_long(step: "object", forward: "object", found: "dict") -> "None":
    """Raise Failure, class ``wrong-result``, where a step that contains a forward pass takes less than LEFT_OUT of one.

    A busy machine makes one call ten times as long as the next, and for seconds on end. So both are timed in turns, and
    every turn has to show it.

    Args:
        step: makes one, and returns its seconds.
        forward: makes a forward pass, likewise.
        found: goes with the failure.
    """
    for turn in range(TURNS):
        taken, least = step(), forward()
        if taken >= LEFT_OUT * least:
            return
        if turn == TURNS - 1:
            text = "a step takes {:.2g} s and a forward pass alone {:.2g} s: something was left out"
            raise Failure("wrong-result", text.format(taken, least), found)


def finite(what: "str", values: "object", found: "dict") -> "None":
    """Raise Failure, class ``nan``, where one of the values is not finite; ``what`` is named in its sentence."""
    if not numpy.isfinite(values).all():
        raise Failure("nan", "{} is not finite".format(what), found)
