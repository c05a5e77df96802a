"""Write ``change_points.json``: series, and the change points that two other programs see in them.

The programs are apache-otava (E-divisive means with a t test, after Hunter of DataStax) and the step detector of asv.
otava gets one window that is wider than the series, since its version 0.8.0 raises ValueError where two windows see the
same change. Run the script in an environment of its own, since neither program is a dependency:

    pip install apache-otava==VERSION asv==VERSION numpy
    python tests/unit/stats/data/change_point_oracles.py
"""

import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
from asv.step_detect import detect_steps
from numpy.typing import NDArray
from otava.analysis import compute_change_points

TARGET = Path(__file__).with_name("change_points.json")
SD = 0.01
Floats = NDArray[np.float64]


def levels(*parts: tuple[int, float]) -> Floats:
    """Return log ratios without noise, given (number of nights, ratio) of each level."""
    return np.concatenate([np.full(count, np.log(ratio)) for count, ratio in parts])


SHAPES = {
    "step of 5 %": levels((30, 1.0), (30, 1.05)),
    "step of 10 %, late": levels((52, 1.0), (8, 1.1)),
    "faster by 5 %": levels((25, 1.0), (35, 0.95)),
    "two steps": levels((20, 1.0), (20, 1.05), (20, 1.12)),
    "step and back": levels((25, 1.0), (10, 1.06), (25, 1.0)),
    "noise": levels((60, 1.0)),
}


def autoregressive(draw: np.random.Generator, count: int) -> Floats:
    """Return AR(1) noise of coefficient 0.5."""
    values = draw.normal(0, SD, count)
    for index in range(1, count):
        values[index] = 0.5 * values[index - 1] + np.sqrt(0.75) * values[index]
    return values


def two_modes(draw: np.random.Generator, count: int) -> Floats:
    """Return noise of nights of which 3 in 10 are slower by 4 %."""
    return draw.normal(0, SD / 2, count) + 0.04 * (draw.random(count) < 0.3)


NOISES = {
    "normal": lambda draw, count: draw.normal(0, SD, count),
    "autocorrelated": autoregressive,
    "two modes": two_modes,
}


def main() -> None:
    """Write the file."""
    entries = []
    for shape_number, (shape, log_ratios) in enumerate(SHAPES.items()):
        for noise_number, (name, noise) in enumerate(NOISES.items()):
            for repetition in range(3):
                draw = np.random.default_rng([46, shape_number, noise_number, repetition])
                values = [round(float(value), 5) for value in log_ratios + noise(draw, len(log_ratios))]
                otava = compute_change_points(np.exp(values), window_len=2 * len(values), max_pvalue=0.001)
                points = otava[0] if isinstance(otava, tuple) else otava
                entries.append(
                    {
                        "shape": shape,
                        "noise": name,
                        "truth": [index + 1 for index in np.flatnonzero(np.diff(log_ratios)).tolist()],
                        "log_ratios": values,
                        "otava": [int(point.index) for point in points],
                        "asv": [int(left) for left, *_ in detect_steps(np.exp(values).tolist())[1:]],
                    }
                )
    versions = {name: version(name) for name in ("apache-otava", "asv", "numpy")}
    lines = ",\n".join(json.dumps(entry) for entry in entries)
    TARGET.write_text('{"versions": ' + json.dumps(versions) + ', "series": [\n' + lines + "\n]}\n")


if __name__ == "__main__":
    main()
