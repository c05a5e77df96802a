"""What nights report, by the program's own functions on a made clock: ``python -m benchmarks.nights``.

Nine tables. sd is the standard deviation of a round's log ratio in turns; every night has another environment.

- steps: a slow-down that comes after 8 equal nights and stays; no limit of time;
- creep: 5 of 20 cells become 0.5 % slower each night; no limit of time;
- ends: how often a slow-down that lasts is said to be over, and how long the end of one takes; no limit of time;
- builds: equal cells, and a step, where each night's build has a level of its own; no limit of time;
- false alarms: equal cells, under several kinds of noise; no limit of time;
- sixty: 60 nights of 200 cells, some of which become slower, under four kinds of noise (``sixty_nights``);
- site: how many change points of the site are false, and how soon a true one is seen (``site_noise``);
- series: what the change points of the series detect by themselves (``series_noise``);
- budget: half of 20 cells become 5 % slower in the third night; the first run uses all of its share of the budget.
"""

import argparse
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from benchmarks import series_noise, site_noise, sixty_nights
from benchmarks.simulated_nights import Outcome, simulate
from benchmarks.simulated_turns import Floats, Noise, Scenario, normal
from runner.watch.nightly import CONFIRMATION_SHARE

NIGHTS = 11  # with the first, which compares nothing
EQUAL_NIGHTS = 8  # before a step, so that there is a series


def step(change: float, cells: int, slower: int, *, first: int = 1, nights: int = NIGHTS) -> Floats:
    """Return the log times (N, P) of cells of which some become slower in a night and stay so."""
    log_times = np.zeros((nights, cells))
    log_times[first:, :slower] = np.log1p(change)
    return log_times


def creep(change: float, cells: int, slower: int, nights: int = NIGHTS) -> Floats:
    """Return the log times (N, P) of cells of which some become slower by the same share every night."""
    log_times = np.zeros((nights, cells))
    log_times[:, :slower] = np.log1p(change) * np.arange(nights)[:, None]
    return log_times


def autocorrelated(sd: float, correlation: float) -> Noise:
    """Return noise of which each round depends on the one before: AR(1)."""

    def noise(draw: np.random.Generator, rounds: int) -> Floats:
        values = draw.normal(0.0, sd, rounds)
        for index in range(1, rounds):
            values[index] = correlation * values[index - 1] + np.sqrt(1 - correlation**2) * values[index]
        return values

    return noise


def heavy(sd: float) -> Noise:
    """Return Student's t with 2 degrees of freedom, whose middle half is as wide as that of a normal with this sd."""
    return lambda draw, rounds: draw.standard_t(2, rounds) * sd * 0.6745 / 0.8165


def bimodal(sd: float) -> Noise:
    """Return noise of processes of which 3 in 10 are 5 % slower, on both sides, over a normal noise."""

    def noise(draw: np.random.Generator, rounds: int) -> Floats:
        is_slow = (draw.random((2, rounds)) < 0.3).astype(float)
        values: Floats = draw.normal(0.0, sd, rounds) + 0.05 * (is_slow[1] - is_slow[0])
        return values

    return noise


NOISES: Mapping[str, Callable[[float], Noise]] = {
    "normal": normal,
    "t with 2 degrees of freedom": heavy,
    "two modes of a process": bimodal,
    "AR(1) 0.5": lambda sd: autocorrelated(sd, 0.5),
}


def outcomes(draw: np.random.Generator, count: int, scenario: Scenario) -> list[Outcome]:
    """Return what some histories report."""
    return [simulate(draw, scenario) for _ in range(count)]


def steps(draw: np.random.Generator, histories: int) -> None:
    """Print how often a step is reported."""
    print("| change | sd | in the first night | within 2 nights | within 10 | in the tenth night |")
    print("|---|---|---|---|---|---|")
    for change, sd in ((0.05, 0.02), (0.05, 0.04), (0.03, 0.02), (0.03, 0.04)):
        log_times = step(change, 1, 1, first=EQUAL_NIGHTS, nights=EQUAL_NIGHTS + 10)
        scenario = Scenario(log_times=log_times, noise=normal(sd), sd=sd, controls=False)
        results = outcomes(draw, histories, scenario)
        reported = np.array([outcome.slower[EQUAL_NIGHTS:, 0] for outcome in results])
        within = [reported[:, :nights].any(axis=1).mean() for nights in (1, 2, 10)]
        print(
            f"| {change:.0%} | {sd:.0%} | "
            + " | ".join(f"{share:.0%}" for share in (*within, reported[:, 9].mean()))
            + " |"
        )


def creeps(draw: np.random.Generator, histories: int) -> None:
    """Print when a creep is reported, and how often the equal cells next to it."""
    print("| sd | night of the first report | by night 9 | in night 10 | equal cells, in 1,000 nights |")
    print("|---|---|---|---|---|")
    for sd in (0.01, 0.02, 0.04):
        scenario = Scenario(log_times=creep(0.005, 20, 5), noise=normal(sd), sd=sd)
        slower = np.array([outcome.slower for outcome in outcomes(draw, histories, scenario)])  # (H, N, P)
        creeping, equal = slower[:, :, :5].transpose(0, 2, 1).reshape(-1, NIGHTS), slower[:, 1:, 5:]
        first = np.where(creeping.any(axis=1), creeping.argmax(axis=1), NIGHTS)
        by_nine, tenth = (first <= 9).mean(), creeping[:, 10].mean()
        print(f"| {sd:.0%} | {np.median(first):.0f} | {by_nine:.0%} | {tenth:.0%} | {1000 * equal.mean():.2f} |")


LASTING, FIXED = 16, 8
"""Nights of a slow-down that lasts, and of one that is fixed then."""


def ends(draw: np.random.Generator, histories: int) -> None:
    """Print how often a slow-down ends by mistake, and after how many nights the end of one is seen."""
    print(
        "| change | sd | reported | false ends of a reported cell | nights until its end is seen, median; seen in 8 |"
    )
    print("|---|---|---|---|---|")
    cells = 10
    for change, sd in ((0.03, 0.02), (0.03, 0.04), (0.05, 0.02), (0.05, 0.04), (0.05, 0.08), (0.10, 0.08)):
        log_times = step(change, cells, cells, first=EQUAL_NIGHTS, nights=EQUAL_NIGHTS + LASTING)
        scenario = Scenario(log_times=log_times, noise=normal(sd), sd=sd)
        slower = np.array([outcome.slower[EQUAL_NIGHTS:] for outcome in outcomes(draw, histories, scenario)])
        reported = slower.any(axis=1)
        false_ends = (np.diff(slower, axis=1) < 0).sum()
        fixed = step(change, cells, cells, first=EQUAL_NIGHTS, nights=EQUAL_NIGHTS + 2 * FIXED)
        fixed[EQUAL_NIGHTS + FIXED :] = 0.0
        scenario = Scenario(log_times=fixed, noise=normal(sd), sd=sd)
        after = np.array(
            [outcome.slower[EQUAL_NIGHTS + FIXED - 1 :] for outcome in outcomes(draw, histories, scenario)]
        )
        open_ones = after.transpose(0, 2, 1).reshape(-1, FIXED + 1)
        open_ones = open_ones[open_ones[:, 0] > 0]
        nights = np.where((open_ones == 0).any(axis=1), (open_ones == 0).argmax(axis=1), FIXED + 1)
        seen = f"{np.median(nights):.0f}; {np.mean(nights <= FIXED):.0%}" if len(nights) else "-"
        share = f"{false_ends / max(reported.sum(), 1):.2f}"
        print(f"| {change:.0%} | {sd:.0%} | {reported.mean():.0%} | {share} | {seen} |")


def builds(draw: np.random.Generator, histories: int) -> None:
    """Print false alerts and the power where each night's build has a level of its own."""
    print("| tau of builds | sd | base | new false alerts, in 1,000 cell-nights | 5 %: within 2 nights, 5, 10 |")
    print("|---|---|---|---|---|")
    for tau in (0.0, 0.005, 0.01, 0.02):
        for sd, base in ((0.02, True), (0.04, True), (0.02, False)):
            new, reported = [], []
            for _ in range(histories):
                scenario = Scenario(log_times=draw.normal(0, tau, (NIGHTS, 20)), noise=normal(sd), sd=sd, base=base)
                new.append((np.diff(simulate(draw, scenario).slower, axis=0) > 0).mean())
                log_times = step(0.05, 20, 4, first=EQUAL_NIGHTS, nights=EQUAL_NIGHTS + 10)
                log_times += draw.normal(0, tau, log_times.shape)
                scenario = Scenario(log_times=log_times, noise=normal(sd), sd=sd, base=base)
                reported.append(simulate(draw, scenario).slower[EQUAL_NIGHTS:, :4])
            within = [np.array(reported)[:, :nights].any(axis=1).mean() for nights in (2, 5, 10)]
            shares = ", ".join(f"{share:.0%}" for share in within)
            print(f"| {tau:.1%} | {sd:.0%} | {'pinned' if base else 'none'} | {1000 * np.mean(new):.1f} | {shares} |")


def false_alarms(draw: np.random.Generator, histories: int) -> None:
    """Print how often equal cells are reported, in tables of 20 cells and of a single cell."""
    print("| noise | sd | of 20 cells, in 1,000 cell-nights | a cell alone, in 1,000 nights |\n|---|---|---|---|")
    for name, noise in NOISES.items():
        for sd in (0.01, 0.02, 0.04):
            shares = []
            for cells, count in ((20, histories), (1, 5 * histories)):
                log_times = np.zeros((NIGHTS, cells))
                scenario = Scenario(log_times=log_times, noise=noise(sd), sd=sd, controls=cells > 1)
                shares.append(np.mean([outcome.slower[1:].mean() for outcome in outcomes(draw, count, scenario)]))
            print(f"| {name} | {sd:.0%} | {1000 * shares[0]:.2f} | {1000 * shares[1]:.2f} |")


def budgets(draw: np.random.Generator, histories: int) -> None:
    """Print how many slow-downs are reported within two nights, by the share of the budget for the second look."""
    print("| share | cells of a case | in the first night | within two nights | seconds over the budget |")
    print("|---|---|---|---|---|")
    for share, cells_of_a_case in ((0.25, 1), (0.5, 1), (CONFIRMATION_SHARE, 1), (CONFIRMATION_SHARE, 4)):
        scenario = Scenario(
            log_times=step(0.05, 20, 10, first=2, nights=4),
            noise=normal(0.02),
            sd=0.02,
            share=share,
            cells_of_a_case=cells_of_a_case,
        )
        results = outcomes(draw, histories, scenario)
        slower = np.array([outcome.slower[2:, :10] for outcome in results])
        seconds = max(float(outcome.seconds.max()) for outcome in results) - scenario.second_look_seconds
        first, both = slower[:, 0].mean(), slower.any(axis=1).mean()
        print(f"| {share:.0%} | {cells_of_a_case} | {first:.0%} | {both:.0%} | {max(seconds, 0):.0f} |")


def main() -> None:
    """Simulate and print."""
    tables = {
        "steps": steps,
        "creep": creeps,
        "ends": ends,
        "builds": builds,
        "false-alarms": false_alarms,
        "budget": budgets,
    }
    of_lines: Mapping[str, Callable[[int], Iterable[str]]] = {
        "sixty": sixty_nights.lines,
        "series": series_noise.lines,
        "site": site_noise.lines,
    }
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=", ".join([*tables, *of_lines]))
    parser.add_argument("--histories", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    for name in arguments.tables or [*tables, *of_lines]:
        print(f"\n{name}\n")
        if name in tables:
            tables[name](np.random.default_rng(arguments.seed), arguments.histories)
        for line in of_lines[name](arguments.seed) if name in of_lines else ():
            print(line, flush=True)


if __name__ == "__main__":
    main()
