"""The review's predictions of what goes wrong on the first GPU, held against the rows of the session; pure.

The review read the program before it was changed for GPUs (issue 18). A prediction that is confirmed is a fault that is
still there, or a property of the hardware that the change allows for; its evidence says which.
"""

import statistics
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple

from benchmarks.first_day.products import GRAPH, OURS, SINGLE
from benchmarks.first_day.rows import Result, Row

Verdict = Literal["confirmed", "refuted", "not tested"]
SHORT = 20e-6  # seconds, below which the review expects the wait to dominate
FAR = 1.5  # the smallest factor that the review predicts for one wait per call
REACHED = 0.75  # of the data sheet's peak, which a product does not reach while the clock is held at base
WARMER = 3  # degrees between the first cells and the last ones
AMPERE = (8, 0)


class Judged(NamedTuple):
    """A prediction, the verdict, and what it rests on."""

    number: str
    claim: str
    verdict: Verdict
    evidence: str


class Seen:
    """The rows of a session, to look up."""

    def __init__(self, results: Iterable[Result]) -> None:
        """Take the results of the checks."""
        self.by_check = {result.check: result.rows for result in results}

    def rows(self, check: str, prefix: str = "") -> list[Row]:
        """Return the rows of a check whose names start with a text."""
        return [row for row in self.by_check.get(check, ()) if row.name.startswith(prefix)]

    def values(self, check: str, prefix: str) -> Mapping[str, Any]:
        """Return the values of the first such row; empty without one."""
        return next((row.values for row in self.rows(check, prefix)), {})

    @property
    def capability(self) -> tuple[int, ...] | None:
        """The compute capability of the first GPU; None where it was not read."""
        gpus = self.values("doctor", "doctor finds the GPU").get("gpus") or [{}]
        capability = gpus[0].get("capability")
        return tuple(capability) if capability else None


Verdicts = tuple[Verdict, str]
NO_GPU: Verdicts = ("not tested", "no GPU is in this machine")


def judged(results: Iterable[Result], *, standin: bool = False) -> list[Judged]:
    """Return each prediction with its verdict; on a stand-in none can be tested."""
    seen = Seen(results)
    rows = []
    for number, (claim, judge) in PREDICTIONS.items():
        verdicts = NO_GPU if standin else judge(seen)
        rows.append(Judged(number, claim, *verdicts))
    return rows


def _untested(reason: str) -> Callable[[Seen], Verdicts]:
    return lambda _: ("not tested", reason)


def _verdict(confirmed: bool, evidence: str) -> Verdicts:  # noqa: FBT001
    return ("confirmed" if confirmed else "refuted"), evidence


def _one_wait(seen: Seen) -> Verdicts:
    """1: a wait after each call is what short products would be measured by."""
    products = [row.values["seconds"] for row in seen.rows("clocks", "product") if "seconds" in row.values]
    short = [each for each in products if each.get(GRAPH, SHORT) < SHORT and SINGLE in each]
    if not short:
        return "not tested", f"no product below {1e6 * SHORT:.0f} µs has a CUDA graph's time"
    waits = statistics.median(each[SINGLE] / each[GRAPH] for each in short)
    ours = [each[OURS] / each[GRAPH] for each in short if OURS in each]
    now = f"; the harness reads {statistics.median(ours):.2f} times" if ours else ""
    return _verdict(waits >= FAR, f"one wait per call reads {waits:.2f} times the graph, {len(short)} products{now}")


def _releases(seen: Seen) -> Verdicts:
    environments = [row.values for row in seen.rows("build", "environment ") if row.values]
    if not environments or not seen.values("build", "runner build").get("complete"):
        return "not tested", "only some environments were asked for"
    counts = {name: sum(each["framework"] == name for each in environments) for name in ("torch", "tensorflow")}
    evidence = f"{counts['torch']} releases of PyTorch and {counts['tensorflow']} of TensorFlow are planned"
    return _verdict(min(counts.values()) <= 1, evidence)


def _estimates(seen: Seen) -> Verdicts:
    ratio = seen.values("quick", "the plan's estimate").get("ratio")
    if ratio is None:
        return "not tested", "the quick run measured nothing"
    over = seen.values("quick", "environments that run").get("skips", {}).get("over-budget", 0)
    evidence = f"measuring took {ratio:.2f} times the estimate; {over} cells were left out as over budget"
    return _verdict(not 1 / 3 <= ratio <= 3, evidence)


def _cudnn_rule(seen: Seen) -> Verdicts:
    products = seen.rows("precisions", "deepbench-gemm/")
    if not products:
        return "not tested", "no product was planned"
    refused = [row.name for row in products if "cudnn" in str(row.values.get("reason", "")).lower()]
    return _verdict(bool(refused), f"{len(refused)} of {len(products)} products are refused for cuDNN's sake")


def _capability(seen: Seen) -> Verdicts:
    capability = seen.capability
    if capability is None or capability >= AMPERE:
        return "not tested", "this GPU has both; a Volta, Turing or Pascal board is needed"
    ran = [
        row.name
        for row in seen.rows("precisions")
        if row.values.get("precision") in {"tf32", "bf16"} and "seconds" in row.values
    ]
    return _verdict(bool(ran), f"{len(ran)} cells in tf32 or bf16 ran")


def _int8(seen: Seen) -> Verdicts:
    rows = [row for row in seen.rows("precisions", "deepbench-gemm/") if row.values.get("precision") == "int8"]
    plain = [row for row in rows if "-nn in" in row.name]
    if not plain:
        return "not tested", "no int8 product without transposition was planned"
    ran = sum("seconds" in row.values for row in plain)
    return _verdict(not ran, f"{ran} of {len(plain)} int8 products without transposition ran")


def _networks(seen: Seen) -> Verdicts:
    running = seen.values("precisions", "networks by precision").get("running")
    if not running:
        return "not tested", "no plan"
    half = running["fp16"] + running["bf16"]
    return _verdict(not half, f"{half} network cells are planned in fp16 and bf16")


def _peak(seen: Seen) -> Verdicts:
    shares = [row.values["share"] for row in seen.rows("precisions", "deepbench-gemm/") if row.values.get("share")]
    how = seen.values("precisions", "clocks during").get("how")
    if not shares:
        return "not tested", "the peak of this GPU is not known"
    if how not in {"locked", "application"}:
        return "not tested", f"the clocks were not held ({how}); the best product reaches {100 * max(shares):.0f} %"
    return _verdict(
        max(shares) < REACHED, f"the best product reaches {100 * max(shares):.0f} % of the data sheet, clocks {how}"
    )


def _old_driver(seen: Seen) -> Verdicts:
    unknown = [
        row.name for row in seen.rows("readings") if "ComputeRunningProcesses" in row.name and row.values.get("answer")
    ]
    if len(unknown) < 2:
        return "not tested", "this driver has the newer functions; one before 450 is needed"
    processes = seen.values("readings", "GPU 0: what its clocks support").get("processes")
    return _verdict(
        processes is None, "neither function that lists processes exists" if processes is None else "a fallback answers"
    )


def _heat(seen: Seen) -> Verdicts:
    celsius = [each for each in seen.values("quick", "clocks and heat").get("celsius", ()) if each is not None]
    if len(celsius) < 20:
        return "not tested", f"{len(celsius)} records have a temperature, 20 are needed"
    early, late = statistics.median(celsius[:5]), statistics.median(celsius[-5:])
    return _verdict(late - early > WARMER, f"{early:g} °C in the first records, {late:g} °C in the last")


def _visible(seen: Seen) -> Verdicts:
    gpus = seen.values("doctor", "doctor finds the GPU").get("gpus") or ()
    boards = [row.values["device_files"] for row in seen.rows("imports") if "device_files" in row.values]
    if len(gpus) < 2 or not boards:
        return "not tested", "a machine with several GPUs is needed"
    return _verdict(max(boards) > 1, f"a server sees {max(boards)} device files, one GPU was asked for")


def _import(seen: Seen) -> Verdicts:
    rows = [row for row in seen.rows("imports") if "after" in row.values]
    if not rows:
        return "not tested", "no framework was imported"
    opened = [row.values["environment"] for row in rows if row.values["after"]["devices"]]
    shown = ", ".join(opened) or "none"
    return _verdict(bool(opened), f"of {len(rows)} imports these opened a device: {shown}")


def _device_seconds(seen: Seen) -> Verdicts:
    rows = [row.values for row in seen.rows("clocks", "product") if "device_seconds" in row.values]
    ratios = [each["device_seconds"] / each["seconds"][GRAPH] for each in rows if each["seconds"].get(GRAPH, 1) < SHORT]
    if not ratios:
        return "not tested", "no short product has both times"
    ratio = statistics.median(ratios)
    return _verdict(ratio > 1.2, f"device_seconds is {ratio:.2f} times the graph's time, {len(ratios)} products")


def _child(seen: Seen) -> Verdicts:
    seconds = seen.values("quick", "the quick run").get("child_seconds") or {}
    if not seconds:
        return "not tested", "no child ended well"
    shown = ", ".join(f"{name} {value:.1f} s" for name, value in seconds.items())
    return _verdict(max(seconds.values()) >= 2, shown)


PREDICTIONS: Mapping[str, tuple[str, Callable[[Seen], Verdicts]]] = {
    "1": ("One wait per call measures the host: products below 20 µs read 1.5 times their time or more", _one_wait),
    "2": ("One PyTorch or one TensorFlow runs here, so that nothing can be compared", _releases),
    "3": ("The plan's estimates are off by a factor of three or more", _estimates),
    "4": ("Products are refused for cuDNN's hardware rule", _cudnn_rule),
    "5": ("tf32 and bf16 run on GPUs that do not have them", _capability),
    "6": ("int8 products without transposition are refused", _int8),
    "7": (
        "--allow-jit marks an environment broken",
        _untested("needs a release without code for this GPU: `runner run --allow-jit`"),
    ),
    "8": (
        "Servers have no affinity to the GPU's CPUs, which adds noise",
        _untested("needs two sockets and a day of rounds"),
    ),
    "9": ("Networks run in fp32 and tf32 alone", _networks),
    "10": (
        "The host backend measures the first framework that it can import",
        _untested("a matter of the plan, not of a GPU"),
    ),
    "11": (
        "Clocks are held while others compute, and an earlier lock is lost",
        _untested("nothing of others is disturbed for a test"),
    ),
    "12": (f"At base clock the best product reaches less than {100 * REACHED:.0f} % of the data sheet's peak", _peak),
    "13": ("TensorFlow pays for padding and masking that others do not", _untested("needs the preset standard")),
    "14": ("An old driver lacks functions, and nothing stands in for them", _old_driver),
    "15": ("The pauses for cooling are used up: late cells are warmer", _heat),
    "16": ("Old images do not start", _untested("no image of that time has code for a GPU from Ampere on")),
    "17": ("A container sees more GPUs than it was given", _visible),
    "18": ("docs/gpus.md is planned from one workload", _untested("a matter of the documentation")),
    "19": ("The import of a framework opens the GPU before the fork", _import),
    "2.2": ("device_seconds contains the dispatch: more than 1.2 times the graph's time below 20 µs", _device_seconds),
    "1, cost": ("A child takes 2 s or more", _child),
}
"""Number in the review -> what it predicts, and how the rows judge it."""
