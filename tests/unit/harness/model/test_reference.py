"""What the check says of networks in two releases of a small framework: it accuses no innocent one and finds errors."""

import textwrap
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from runner.harness.errors import CellFailure
from runner.harness.model import blob
from runner.harness.model.builder import Builder
from runner.harness.model.changing import NO_STEP, OTHER_LOSS, SOME_STAY
from runner.harness.model.reference import compute
from runner.harness.model.trial import ModelTrial
from tests.support.seeded_numpy import CASE, SeededNumpy, model_module

NETWORK = """\
import numpy


class Network:
    rate, decay, momentum, scale, calls = 0.1, 0.9, 0.1, 1.0, 0

    def __init__(self, random):
        self.weight = random.randn(32, 8).astype("float32")
        self.mean, self.average = numpy.zeros(8, "float32"), self.weight.copy()
        self.x = random.randn(64, 32).astype("float32")
        self.setup()

    def setup(self):
        pass

    def mask(self):
        return 1.0

    def forward(self):
        return self.x.dot(self.weight) - self.mean

    def loss_and_gradient(self):
        x = self.x * self.mask()
        outputs = x.dot(self.weight)
        self.mean += numpy.float32(self.momentum) * (outputs.mean(0) - self.mean)
        return self.scale * (outputs ** 2).mean(), x.T.dot(2 * outputs / outputs.size).astype("float32")

    def train(self):
        self.calls += 1
        loss, gradient = self.loss_and_gradient()
        self.weight -= numpy.float32(self.rate) * gradient
        self.average[...] = self.decay * self.average + (1 - self.decay) * self.weight
        return loss


class NumpyModel(Network):
    name = "small"
"""
DROPOUT = """
def mask(self):
    return FRAMEWORK.rand(64, 32) > 0.1
"""
HIDDEN = """
def setup(self):
    self.hidden = numpy.zeros(8).tobytes()

def forward(self):
    outputs = numpy.tanh(self.x.dot(self.weight) + numpy.frombuffer(self.hidden))
    self.hidden = outputs[0].tobytes()
    return outputs
"""


class OtherNumbers(SeededNumpy):
    """A release that draws other numbers from the same seed."""

    first_seed = 10**6


class Keys(SeededNumpy):
    """Another framework, whose programs pass keys of random numbers on."""

    @classmethod
    def draws(cls) -> str:
        """See UserModel."""
        return "some bits"


class OtherKeys(Keys):
    """A release that draws other bits from one key."""

    @classmethod
    def draws(cls) -> str:
        """See UserModel."""
        return "other bits"


SECOND = {"alike": SeededNumpy, "otherwise": OtherNumbers, "from keys": Keys}
"""How the second release draws random numbers -> its class."""


def module(methods: str, *, second: bool) -> Any:
    """Return the model file as one of the releases sees it."""
    return model_module(NETWORK + textwrap.indent(textwrap.dedent(methods), "    "), SECOND=second)


def base(methods: str, release: type = SeededNumpy) -> Builder:
    """Return what builds the network in the first release."""
    return Builder(release, module(methods, second=False), CASE, "cpu")


_trial: Any = ModelTrial


def verified(
    folder: Path, methods: str, release: type = SeededNumpy, phase: str = "train", first: type = SeededNumpy, **how: Any
) -> dict[str, Any]:
    """Return how a cell was verified in the second release, or with ``is_base`` in the first one, which is the base.

    ``calls`` are timed; ``second`` says what the model file sees as SECOND where that is not the release, and
    ``trained_base`` what has made the state after training where that is not the base.

    Raises:
        CellFailure: the cell fails.
    """
    calls, second = how.pop("calls", 8), how.pop("second", not how.get("is_base"))
    facts, groups = compute(base(methods, first), "fp32")
    facts["trained_base"] = how.pop("trained_base", "np-a")
    path = str(folder / "arrays")
    blob.write(path, groups)

    def load() -> Any:
        return module(methods, second=second)

    files = SimpleNamespace(load=load, load_anew=load)
    reference = {"facts": facts, "arrays": blob.index(groups), "base": "np-a", "path": path, "files": files}
    reference["content"] = blob.content(path)
    request = {"case": CASE, "phase": phase, "device": "cpu", "precision": "fp32", "check_steps": True, **how}
    trial: Any = _trial(release, request, reference)
    program, facts_of_cell = trial.build_verified(CASE)
    for _ in range(calls):
        getattr(program, phase)()
    trial.keep_last(getattr(program, phase))
    trial.verify_again(program, facts_of_cell, CASE)
    check: dict[str, Any] = facts_of_cell["model_check"]
    return check


INNOCENT = {
    "plain": "",
    "dropout": DROPOUT,
    "a hidden state": HIDDEN,
    "a sample": """
        def forward(self):
            return FRAMEWORK.rand(5)
        """,
    "infinite scores": """
        def forward(self):
            outputs = self.x.dot(self.weight)
            outputs[:, 0] = -numpy.inf
            return outputs
        """,
    "a forward pass far longer than a step": """
        def forward(self):
            for _ in range(2000):
                outputs = self.x.dot(self.weight)
            return outputs
        """,
    "a sign that rounding decides": """
        def setup(self):
            self.noise = numpy.ones(8, "float32")

        def train(self):
            rounding = self.weight.sum(0) - self.weight[::-1].sum(0, "float64") * (1 + 1e-7 * SECOND)
            self.noise -= numpy.float32(0.01) * numpy.sign(rounding)
            return super().train()
        """,
}


@pytest.mark.parametrize("draws", SECOND)
@pytest.mark.parametrize("phase", ["forward", "train"])
@pytest.mark.parametrize("name", INNOCENT)
def test_an_innocent_network_is_checked(tmp_path: Path, name: str, phase: str, draws: str) -> None:
    for release, is_base in ((SeededNumpy, True), (SECOND[draws], False)):
        check = verified(tmp_path, INNOCENT[name], release, phase, is_base=is_base)
        assert (check["by"], check["differs"], check["no_update"]) == ("state", False, "")


WRONG = {
    "outputs of a network with dropout": (
        DROPOUT
        + """
def forward(self):
    return super().forward() * (1 + SECOND)
""",
        "the output is off by 1.0e+00 of its norm after the timing, 1e-03 allowed",
    ),
    "a loss of a network with dropout": (
        DROPOUT
        + """
def setup(self):
    self.scale = 10.0 if SECOND else 1.0
""",
        "the loss of step 1 is off by ",
    ),
    "dropout that is left on": (
        DROPOUT
        + """
def forward(self):
    return (self.x * (self.mask() if SECOND else 1)).dot(self.weight)
""",
        "the output is off by ",
    ),
    "statistics that are not updated": (
        """
        def setup(self):
            self.momentum = 0.0 if SECOND else 0.1
        """,
        "'mean' of the state is off by ",
    ),
    "an average with another decay": (
        """
        def setup(self):
            self.decay = 0.99 if SECOND else 0.9
        """,
        "'average' of the state is off by ",
    ),
    "a frozen array that is trained": (
        """
        def setup(self):
            self.frozen = self.x[0].copy()

        def train(self):
            self.frozen *= 1 - SECOND * numpy.float32(1e-3)
            return super().train()
        """,
        "'frozen' of the state differs after 3 steps, which do not change it in np-a, the base",
    ),
    "the rate of the last step": (
        """
        def train(self):
            self.rate = 0.2 if SECOND and self.calls == 2 else 0.1
            return super().train()
        """,
        "'weight' of the state is off by ",
    ),
    "outputs after training alone": (
        """
        def forward(self):
            return super().forward() * (1 + 0.01 * SECOND * (self.calls == 3))
        """,
        "the output is off by 1.0e-02 of its norm after the first steps, 1e-03 allowed",
    ),
}


@pytest.mark.parametrize("draws", SECOND)
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_network_is_found_and_the_base_is_not_accused(tmp_path: Path, name: str, draws: str) -> None:
    methods, reason = WRONG[name]
    assert verified(tmp_path, methods, is_base=True)["differs"] is False
    with pytest.raises(CellFailure) as caught:
        verified(tmp_path, methods, SECOND[draws])
    assert caught.value.kind == "wrong-result"
    assert caught.value.reason.startswith(reason)


@pytest.mark.parametrize("name", ["statistics that are not updated", "outputs after training alone"])
def test_what_the_steps_leave_behind_may_have_another_base(tmp_path: Path, name: str) -> None:
    methods, _ = WRONG[name]
    with pytest.raises(CellFailure, match="the base is np-c"):
        verified(tmp_path, methods, trained_base="np-c")
    check = verified(tmp_path, methods, trained_base="np-b", is_trained_base=True)
    assert (check["by"], check["differs"]) == ("shapes", True)
    assert check["reason"].startswith("this environment made the reference, and no longer gives the same")


def test_releases_whose_keys_give_other_bits_may_differ(tmp_path: Path) -> None:
    methods, _ = WRONG["outputs after training alone"]
    check = verified(tmp_path, methods, OtherKeys, first=Keys)
    assert (check["differs"], check["by"]) == (True, "shapes")
    assert check["reason"].startswith("one key of the framework's generator gives other random bits here than in np-a")


def test_a_loss_that_depends_on_random_numbers_has_the_spread_over_seeds_as_its_tolerance(tmp_path: Path) -> None:
    check = verified(tmp_path, DROPOUT, OtherNumbers)
    assert 1e-3 < check["tolerance"]["loss"] < 1.0
    assert check["tolerance"]["forward"] == 1e-3
    assert check["reason"].startswith("random numbers influence the loss of step 1, the loss of step 2 and ")


def test_what_changes_from_call_to_call_is_named_and_calls_are_compared_with_the_same_calls(tmp_path: Path) -> None:
    check = verified(tmp_path, HIDDEN, phase="forward")
    assert check["reason"].startswith("`hidden` differs from call to call and is not in the state: ")
    wrong = HIDDEN.replace("return outputs", "return outputs * (1 + SECOND)")
    with pytest.raises(CellFailure, match=r"^the output is off by 1\.0e\+00 of its norm, 1e-03 allowed"):
        verified(tmp_path, wrong, phase="forward")
    forgets = HIDDEN.replace("outputs[0].tobytes()", "(outputs[0] * (not SECOND)).tobytes()")
    with pytest.raises(CellFailure, match=r"^the output is off by .* of its norm in its second call, 1e-03 allowed"):
        verified(tmp_path, forgets, phase="forward")


def test_outputs_that_grow_from_call_to_call_are_no_fault_of_one_release() -> None:
    grows = """
        def forward(self):
            self.calls += 1
            return numpy.stack([self.weight] * self.calls)
        """
    with pytest.raises(CellFailure) as caught:
        compute(base(grows), "fp32")
    sentence = "the network changes its shapes: its outputs were (1, 32, 8) and later (2, 32, 8)"
    assert (caught.value.kind, caught.value.reason) == ("wrong-result", sentence)


CHANGES = """
def forward(self):
    self.calls += 1
    return self.x * (1 + ({}))
"""
WITHOUT_A_STATE = """
def setup(self):
    self.x = (self.x * 1000).astype(int)  # arrays of floats are the state
    del self.weight, self.mean, self.average

def train(self):
    return float((self.x ** 2).mean())
"""
MODULE_COUNTS = CHANGES.replace("self.calls", "NumpyModel.calls")
OFF = "the output is off by 1.0e+00 of its norm, 1e-03 allowed"
LATER = f"the network changes its results after its first calls: {OFF}; the base is the first call of a new object"
TIMED = f"the network gives other results in the calls that are timed: {OFF}; the base is a later call"


@pytest.mark.parametrize("is_base", [True, False])
@pytest.mark.parametrize("state", ["", WITHOUT_A_STATE], ids=["state", "no state"])
@pytest.mark.parametrize(
    ("methods", "calls", "reason"),
    [
        (CHANGES.format("self.calls > 6"), 8, LATER),
        (CHANGES.format("self.calls == 10"), 8, TIMED),
        (MODULE_COUNTS.format("NumpyModel.calls > 90"), 100, LATER),
    ],
    ids=["later", "timed", "module"],
)
def test_results_that_change_with_the_calls_are_wrong(
    tmp_path: Path, methods: str, calls: int, reason: str, state: str, *, is_base: bool
) -> None:
    """Those of the base, and of a network without a state, were only unchecked."""
    with pytest.raises(CellFailure) as caught:
        verified(tmp_path, state + methods, phase="forward", is_base=is_base, calls=calls)
    assert caught.value.kind == "wrong-result"
    if is_base or state:
        assert caught.value.reason == reason


def test_results_that_a_new_object_has_too_are_unchecked(tmp_path: Path) -> None:
    """The base may compute other results in each process; without a state, a network may start from others."""
    other = CHANGES.format("SECOND")
    check = verified(tmp_path, other, phase="forward", is_base=True, second=True)
    assert (check["by"], check["differs"], check["tolerance"]) == ("shapes", True, {})
    assert check["reason"].startswith("this environment made the reference, and no longer gives the same")
    check = verified(tmp_path, WITHOUT_A_STATE + other, phase="forward")
    assert (check["by"], check["differs"], check["tolerance"]) == ("shapes", True, {})
    assert check["reason"].startswith("no state could be loaded")


NO_UPDATE = {
    "no step": (
        """
        def train(self):
            return float((self.x.dot(self.weight) ** 2).mean())
        """,
        "3 steps change nothing of the state: their update was not seen, and is not checked",
    ),
    "statistics alone": (
        """
        def train(self):
            return float(self.loss_and_gradient()[0])
        """,
        "the losses of 3 steps are equal in each bit: no update was seen in them, and no gradient is checked",
    ),
    "trained elsewhere": (
        """
        def train(self):
            self.scale *= 0.9
            return self.scale
        """,
        "3 steps change nothing of the state, though the losses change (what is trained is not in it, ",
    ),
}


@pytest.mark.parametrize("name", NO_UPDATE)
def test_steps_that_change_nothing_are_in_the_record(tmp_path: Path, name: str) -> None:
    methods, sentence = NO_UPDATE[name]
    hows: tuple[dict[str, Any], ...] = ({"is_base": True}, {}, {"check_steps": False})
    for how in hows:
        assert verified(tmp_path, methods, **how)["no_update"].startswith(sentence)
        assert verified(tmp_path, methods, phase="forward", **how)["no_update"] == ""


COUNTED = """
def train(self):
    self.calls += 1
    loss, gradient = self.loss_and_gradient()
    if self.calls <= 6 or not SECOND:
        self.weight -= numpy.float32(self.rate) * gradient
    {}
    return loss
"""
LATER_STEPS: dict[str, tuple[str, str]] = {
    "no update at all": (
        "if self.calls > 6 and SECOND:\n        self.mean[...] = 0",
        NO_STEP.format("`mean` and `weight`"),
    ),
    "without an array": ("pass", SOME_STAY.format("`weight`")),
    "another loss": ("loss *= 1 + (self.calls > 6 and SECOND)", OTHER_LOSS.format(0, 0).partition("0")[0]),
    "alike": ("self.average[...] = 0.5 * self.average", ""),
}
"""What the second release does in its steps after the sixth -> its lines, and how the sentence begins."""


@pytest.mark.parametrize("name", LATER_STEPS)
def test_steps_that_do_less_once_they_are_timed_are_seen(tmp_path: Path, name: str) -> None:
    line, sentence = LATER_STEPS[name]
    methods = COUNTED.format(line)
    if name == "alike":
        methods = methods.replace("or not SECOND", "or True")
    if name == "no update at all":
        with pytest.raises(CellFailure) as caught:
            verified(tmp_path, methods, calls=8)
        assert (caught.value.kind, caught.value.reason) == ("wrong-result", sentence)
        return
    later = verified(tmp_path, methods, calls=8)["later"]
    assert later.startswith(sentence)
    assert bool(later) == bool(sentence)


@pytest.mark.parametrize("calls", range(5, 12))
@pytest.mark.parametrize("period", [2, 4, 7])
def test_a_class_that_updates_in_some_calls_does_not_fail(tmp_path: Path, period: int, calls: int) -> None:
    accumulates = f"""
        def train(self):
            loss, gradient = Network.loss_and_gradient(self)
            self.mean[...] = 0
            if self.calls % {period} == 0:
                self.weight -= numpy.float32(self.rate) * gradient
            self.calls += 1
            return loss
        """
    assert verified(tmp_path, accumulates, calls=calls)["later"] == ""


def test_a_class_that_takes_the_next_batch_is_not_compared_with_its_first_steps(tmp_path: Path) -> None:
    batches = """
        def train(self):
            self.calls += 1
            loss, gradient = self.loss_and_gradient()
            self.weight -= numpy.float32(self.rate) * gradient
            return loss * (1 + self.calls % 3)
        """
    assert compute(base(batches), "fp32")[0]["repeats"] is False
    assert compute(base(""), "fp32")[0]["repeats"] is True
    assert verified(tmp_path, batches, calls=8)["later"] == ""


LARGE = """
def setup(self):
    self.large = numpy.random.RandomState(3 + SECOND).randn(64, 64).astype("float32")

def forward(self):
    return self.x.dot(self.weight) * {factor} + self.large.sum()
"""


@pytest.mark.parametrize("phase", ["forward", "train"])
def test_a_state_that_is_drawn_by_name_is_verified_by_outputs_and_losses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, phase: str
) -> None:
    monkeypatch.setattr(blob, "MAX_BYTES", 12000)
    check = verified(tmp_path, LARGE.format(factor=1), phase=phase)
    assert (check["by"], check["differs"], check["reason"], check["partly"]) == ("drawn", False, "", "")
    with pytest.raises(CellFailure, match=r"^the output is off by"):
        verified(tmp_path, LARGE.format(factor="(1 + SECOND)"), phase=phase)


def test_outputs_after_the_steps_are_compared_where_the_state_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blob, "MAX_BYTES", 12000)
    facts, groups = compute(base(LARGE.format(factor=1)), "fp32")
    assert (facts["by"], sorted(groups)) == ("drawn", ["outputs", "trained"])
    other = "(1 + SECOND * (self.calls == 3))"
    with pytest.raises(CellFailure, match="after the first steps"):
        verified(tmp_path, LARGE.format(factor=other))


EXTRA = """
def setup(self):
    if SECOND:
        self.extra = numpy.random.RandomState(1).randn(8)
        self.network_mask = numpy.ones(8)
    else:
        self.bias = numpy.zeros(8, "float32")
"""


def test_names_that_both_sides_have_are_compared_after_the_steps(tmp_path: Path) -> None:
    check = verified(tmp_path, EXTRA)
    assert (check["by"], check["differs"]) == ("state", False)
    sentence = (
        "only the base's state has bias, and only this environment's state has extra and network_mask, as it was built"
    )
    assert check["partly"] == sentence
    check = verified(tmp_path, EXTRA + "    self.decay = 0.95 if SECOND else 0.9\n")
    assert (check["by"], check["differs"]) == ("shapes", True)
    assert "'average' of the state is off by" in check["reason"]


NOTHING_SHARED = """
def setup(self):
    if SECOND:
        self.__dict__ = {name + "2": value for name, value in self.__dict__.items()}

def forward(self):
    return vars(self).get("weight2", vars(self).get("weight")) * (1 + SECOND)

def train(self):
    self.calls += 1
    return 1.0 / self.calls + SECOND
"""


@pytest.mark.parametrize("phase", ["forward", "train"])
def test_a_state_without_a_common_name_is_compared_by_shapes(tmp_path: Path, phase: str) -> None:
    check = verified(tmp_path, NOTHING_SHARED, phase=phase)
    assert (check["by"], check["differs"], check["tolerance"]) == ("shapes", False, {})
    assert check["reason"].startswith("the state of this environment has no name in common with the base's")


NOT_FINITE = {
    "forward": """
        def forward(self):
            return self.x.dot(self.weight) / numpy.float32(SECOND)
        """,
    "train": """
        def train(self):
            return numpy.sqrt(self.weight[0, 0] * 0 - 1 + SECOND)
        """,
}


@pytest.mark.parametrize("broken", NOT_FINITE)
def test_numbers_that_are_not_finite_cost_the_other_phase_nothing(tmp_path: Path, broken: str) -> None:
    kept = "train" if broken == "forward" else "forward"
    facts, groups = compute(base(NOT_FINITE[broken]), "fp32")
    assert (facts["fails"], list(facts["silent"])) == ([broken], [broken])
    assert (bool(facts["losses"]), bool(groups["outputs"])) == (kept == "train", kept == "forward")
    assert "trained" not in groups
    assert verified(tmp_path, NOT_FINITE[broken], phase=kept)["by"] == "state"
    check = verified(tmp_path, NOT_FINITE[broken], phase=broken)
    assert (check["by"], check["reason"]) == ("shapes", facts["silent"][broken])


CACHE = """
def forward(self):
    outputs = self.x.dot(self.weight)
    cache = object() if SECOND == {second} else (outputs + 1, outputs + 2)
    return {{"cache": cache, "logits": outputs * {factor}}}
"""


@pytest.mark.parametrize(
    ("second", "note"),
    [
        (True, "output 'cache' is an object, and is not compared"),
        (False, "output 'cache' is no tensor in the base, and is not compared"),
    ],
)
def test_an_output_that_is_an_object_in_one_release_is_not_compared(tmp_path: Path, second: bool, note: str) -> None:  # noqa: FBT001
    check = verified(tmp_path, CACHE.format(second=second, factor=1))
    assert (check["by"], check["differs"], check["partly"]) == ("state", False, note)
    with pytest.raises(CellFailure) as caught:
        verified(tmp_path, CACHE.format(second=second, factor="(1 + SECOND)"), phase="forward")
    assert caught.value.reason.startswith("output 'logits' is off by 1.0e+00 of its norm after the timing")


def test_outputs_without_a_common_tensor_differ(tmp_path: Path) -> None:
    methods = """
        def forward(self):
            outputs = self.x.dot(self.weight)
            return {"a": object(), "b": outputs} if SECOND else {"a": outputs, "b": object()}
        """
    with pytest.raises(CellFailure) as caught:
        verified(tmp_path, methods)
    assert caught.value.reason.startswith("the outputs are output 'b' after the timing, and output 'a' in np-a")
