"""The evidence of rows without their outliers: by medians and median absolute deviations."""

from collections.abc import Sequence

import numpy as np

from runner.core.grouping import grouped
from runner.stats.intervals import Floats, PairedEvidence
from runner.stats.sample_shape import MAD_SCALE

MIN_ROUNDS = 5
"""With fewer rounds, the median absolute deviation is the distance of two rounds that happen to agree."""
OUTLYING = 2.0
"""Single rounds make most of a standard deviation that is so many times as large as the one without outliers."""


def without_outliers(evidence: PairedEvidence, log_ratios: Sequence[Floats | None]) -> PairedEvidence:
    """Return the evidence of P rows by the medians and the median absolute deviations of their rounds.

    The error is infinite where that is no other view of a row: it has fewer than MIN_ROUNDS rounds, or its standard
    deviation is not OUTLYING times as large.

    Args:
        evidence: of the rows, (P,); a factor of its errors applies to the new errors, too.
        log_ratios: the rounds of each row, (R,); None for one of which no look takes ranks.

    References:
        Croux and Rousseeuw, Time-efficient algorithms for two highly robust estimators of scale, Computational
        Statistics 1, 1992: R / (R - 0.8) corrects the median absolute deviation of few rounds.
    """
    mean, error = evidence.mean.copy(), np.full(len(evidence.mean), np.inf)
    enough = ((index, each) for index, each in enumerate(log_ratios) if each is not None and len(each) >= MIN_ROUNDS)
    for count, members in grouped((len(each), (index, each)) for index, each in enough).items():
        rows, values = np.array([index for index, _ in members]), np.stack([each for _, each in members])
        middle = np.median(values, axis=1)
        robust = MAD_SCALE * count / (count - 0.8) * np.median(np.abs(values - middle[:, None]), axis=1)
        all_rounds = values.std(axis=1, ddof=1)
        outlying = (all_rounds > OUTLYING * robust) & (robust > 0)
        mean[rows] = np.where(outlying, middle, mean[rows])
        shares = robust / np.where(outlying, all_rounds, 1.0)
        error[rows] = np.where(outlying, evidence.error[rows] * shares, np.inf)
    return evidence._replace(mean=mean, error=error)
