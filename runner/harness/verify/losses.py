"""The losses of ``adapters.base`` in NumPy, each with its slope in the outputs of the network."""

import numpy


def squared_error(outputs, target):
    """Return (mean of squared errors, its slope)."""
    error = outputs - target
    return float((error ** 2).mean()), 2 * error / error.size


def cross_entropy(logits, target):
    """Return (mean cross entropy in nats of logits (..., C) at classes (...), its slope)."""
    flat, classes = logits.reshape(-1, logits.shape[-1]), target.reshape(-1)
    logp = log_softmax(flat)
    rows = numpy.arange(len(flat))
    slope = numpy.exp(logp)
    slope[rows, classes] -= 1
    return float(-logp[rows, classes].mean()), (slope / len(flat)).reshape(logits.shape)


def log_softmax(logits):
    """Return log(softmax) over the last axis."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - numpy.log(numpy.exp(shifted).sum(axis=-1, keepdims=True))


def sigmoid_cross_entropy(logits, target):
    """Return (mean of max(z, 0) - z y + log(1 + exp(-|z|)) over logits z (B, 1) and y (B,), its slope)."""
    z = logits[:, 0]
    loss = numpy.maximum(z, 0) - z * target + numpy.log1p(numpy.exp(-abs(z)))
    slope = 0.5 * (numpy.tanh(0.5 * z) + 1) - target
    return float(loss.mean()), (slope / len(z))[:, None].astype(logits.dtype)


def ctc(logits, labels, lengths):
    """Return (mean over B of -log p(labels), its slope), blank 0.

    Forward and backward variables in logarithms: Graves et al. 2006, section 4.1, equation 16 for the slope.

    Args:
        logits: (T, B, C).
        labels: (B, N), none of them 0.
        lengths: (B,), the number of steps of each sample.
    """
    steps, batch, _ = logits.shape
    logp = log_softmax(logits)
    states = numpy.zeros((batch, 2 * labels.shape[1] + 1), int)
    states[:, 1::2] = labels
    samples = numpy.arange(batch)
    state_logp = logp[:, samples[:, None], states]  # (T, B, S)
    jumps = numpy.zeros(states.shape, bool)  # whether state s can be reached from s - 2
    jumps[:, 2:] = (states[:, 2:] != 0) & (states[:, 2:] != states[:, :-2])
    alpha = numpy.full(state_logp.shape, -numpy.inf)
    alpha[0, :, :2] = state_logp[0, :, :2]
    for t in range(1, steps):
        alpha[t] = state_logp[t] + _log_arrivals(alpha[t - 1], jumps)
    beta = numpy.full(state_logp.shape, -numpy.inf)
    back = _reversed_jumps(jumps)
    for t in reversed(range(steps)):
        if t + 1 < steps:
            beta[t] = state_logp[t] + _log_arrivals(beta[t + 1][:, ::-1], back)[:, ::-1]
        ending = lengths == t + 1
        beta[t, ending, -2:] = state_logp[t, ending, -2:]
    total = numpy.logaddexp(alpha[lengths - 1, samples, -1], alpha[lengths - 1, samples, -2])
    posterior = numpy.exp(alpha + beta - state_logp - total[:, None])
    slope = numpy.exp(logp)
    for s in range(states.shape[1]):
        slope[:, samples, states[:, s]] -= posterior[:, :, s]
    slope[numpy.arange(steps)[:, None] >= lengths] = 0
    return float(-total.mean()), (slope / batch).astype(logits.dtype)


def _log_arrivals(before, jumps):
    """Return the log of the probability that arrives at each state (B, S): from itself, the state before, and by a jump."""
    padded = numpy.pad(before, ((0, 0), (2, 0)), "constant", constant_values=-numpy.inf)
    jumped = numpy.where(jumps, padded[:, :-2], -numpy.inf)
    return numpy.logaddexp(numpy.logaddexp(padded[:, 2:], padded[:, 1:-1]), jumped)


def _reversed_jumps(jumps):
    """Return the jumps (B, S) of the reversed states: from s + 2 to s where there is one from s to s + 2."""
    backwards = numpy.zeros(jumps.shape, bool)
    backwards[:, 2:] = jumps[:, 2:][:, ::-1]
    return backwards
