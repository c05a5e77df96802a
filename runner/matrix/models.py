"""The keys of ``matrix.yaml`` as frozen models that accept no unknown key and convert nothing, and their schema."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PrivateAttr, field_validator

from runner.catalog.cases import CASES, WORKLOADS
from runner.core.architectures import USUAL, Architecture
from runner.core.model import Process, Protocol
from runner.core.model.cells import PHASE_NAMES
from runner.core.model.variant_ids import USUAL_LAUNCH, Launch, without_variant
from runner.core.variables import NAME
from runner.matrix.environments import Environment
from runner.matrix.fields import (
    Count,
    Devices,
    EnvironmentId,
    ModelPath,
    Part,
    Patterns,
    Phases,
    Precisions,
    Rate,
    Repository,
    Seconds,
    Text,
    WorkloadName,
)
from runner.matrix.model_file import NETWORK_NAME, Network


class WorkloadChoice(Part):
    """Which cases of a workload to measure, and how."""

    file: ModelPath | None = None
    """A model file, which makes the workload a network of yours under any new name; below the matrix file's folder."""
    cases: Annotated[tuple[Text, ...], Field(strict=False)] = ("*",)
    """Names of cases; * stands for any text and ? for any character."""
    phases: Phases = ("forward", "train")
    """The phases to time; by default, of a network all that its class has."""
    precisions: Precisions = ("fp32",)
    """The precisions to measure in."""


class Exclude(Part):
    """A rule that excludes cells."""

    select: Text
    """A glob over cell ids, environment/implementation/workload/case/phase/precision; it must match a possible cell."""
    reason: Text
    """The reason in a sentence; the plan shows it."""


def _as_selector(value: object) -> object:
    """Return a text as a selector with this pattern of cases; any other value unchanged."""
    return {"cases": (value,)} if isinstance(value, str) else value


class Selector(Part):
    """Cells that a preset includes: those that match all keys. * stands for any text, ? for a character, ! excludes."""

    cases: Patterns = ()
    """Cases as workload/case, or one phase of them as workload/case/phase; all of them by default."""
    phases: Phases | None = None
    """The phases to time; by default those of the preset or the workload."""
    environments: Patterns = ()
    """Environment ids; all of them by default."""
    implementations: Patterns = ()
    """Implementations such as nn-lstm; all of them by default."""
    precisions: Precisions | None = None
    """The precisions, of those that the workload lists; by default those of the preset."""
    devices: Devices = ("cpu", "cuda")
    """The devices on which the selector counts, cpu and cuda; both by default."""


class Preset(Part):
    """A named selection of cells and how much to measure, for `--preset`."""

    select: Annotated[tuple[Annotated[Selector, BeforeValidator(_as_selector)], ...], Field(strict=False)]
    """The cells of the preset: those that any of these selectors matches. A text alone is a pattern of `cases`."""
    about: str = ""
    """What the preset is for, in a few words: `runner list presets` prints it."""
    protocol: Protocol = "aligned"
    """aligned: the same computation in every framework; published: what the original programs computed and timed."""
    rounds: Count = 3
    """Rounds for each cell, each in a fresh process."""
    max_rounds: Count | None = None
    """Upper limit of rounds for cells without a verdict; by default that of `measure`."""
    seconds: Seconds = 2.0
    """Seconds of measured iterations for each cell and round."""
    phases: Phases | None = None
    """The phases to time; by default those of the workload."""
    precisions: Precisions | None = None
    """The precisions to measure in, of those that the workload lists; by default all of them."""


class Measure(Part):
    """How to measure."""

    rounds: Count = 3
    """Rounds for each cell, each in a fresh process."""
    max_rounds: Count = 20
    """Upper limit of rounds for cells without a verdict."""
    seconds: Seconds = 2.0
    """Seconds of measured iterations for each cell and round."""
    timeout: Seconds = 600.0
    """Seconds after which the process of a cell is killed."""
    threads: Count | None = None
    """CPU threads for every framework; by default all physical cores that this process may use."""
    margin: Annotated[float, Field(gt=0, lt=1)] = 0.02
    """The largest relative difference that counts as no difference: 0.02 is 2 %."""
    controls: bool = True
    """Whether to add controls: an A/A pair and plain processes to each case, and a canary to each round."""
    restart: Count = 1
    """Rounds after which servers are replaced."""
    process: Process = "fork"
    """How a process that times a cell starts: fork copies a server, plain is a new interpreter, as a script has."""


class GpuSettings(Part):
    """How to set up GPUs while measuring."""

    clocks: Literal["base", "max", "leave"] | Count = "base"
    """The clock of the multiprocessors: base, max, a number of MHz, or leave, which does not change it."""
    memory: Literal["max", "leave"] | Count | None = None
    """The clock of the memory: max, a number of MHz, or leave; by default max, or leave if clocks is leave."""
    telemetry: Literal[0] | Rate = 10.0
    """Readings per second of clocks, power, temperature and throttling; 0 reads nothing."""


def _as_tuple(value: object) -> object:
    """Return a text as a tuple with it; any other value unchanged."""
    return (value,) if isinstance(value, str) else value


class Nightly(Part):
    """What `runner nightly` measures beyond the selected cells."""

    base: Annotated[tuple[EnvironmentId, ...], BeforeValidator(_as_tuple), Field(strict=False)] = ()
    """The environments, one for each framework, that every night measures alternately with all others: a release that
    stays, so that the ratios to it can be compared over nights. A text alone is one of them."""


class Matrix(Part):
    """The environments, what they compute, and how to measure it."""

    version: Literal[1]
    """The version of this format."""
    environments: dict[EnvironmentId, Environment]
    """The framework releases by id, which selectors, results and reports use."""
    workloads: dict[WorkloadName, WorkloadChoice]
    """The workloads to measure."""
    presets: dict[Text, Preset] = Field(default={})
    """Selections by name, for `--preset`."""
    measure: Measure = Measure()
    """How much to measure, and which difference counts as none."""
    nightly: Nightly = Nightly()
    """What nights measure beyond the selected cells."""
    gpu: GpuSettings = GpuSettings()
    """The settings of GPUs, which are undone after a run."""
    exclude: Annotated[tuple[Exclude, ...], Field(strict=False)] = ()
    """Rules that exclude cells."""
    registry: Repository | None = None
    """The repository that `runner build --push` pushes images to, such as registry.example.com/team/matrix-runner; all
    hosts then pull them, by the digests in `docker/images.toml`, instead of building their own."""
    _networks: Mapping[str, Network] = PrivateAttr(default_factory=dict)
    _cases: Mapping[str, Mapping[str, Any]] = PrivateAttr(default_factory=lambda: CASES)
    _threads: Mapping[str, int] = PrivateAttr(default_factory=dict)
    _follows: Mapping[str, str] = PrivateAttr(default_factory=dict)
    _as_is: frozenset[str] = PrivateAttr(default=frozenset())
    _architecture: Architecture = PrivateAttr(default=USUAL)

    @property
    def networks(self) -> Mapping[str, Network]:
        """Workload -> the user's network that its model file describes; without those whose file was not read."""
        return self._networks

    @property
    def cases(self) -> Mapping[str, Mapping[str, Any]]:
        """``workload/case`` -> the sizes: the cases of the program, and then those of the user's networks."""
        return self._cases

    def phases_of(self, workload: str) -> tuple[str, ...]:
        """Return the phases that are timed of a workload: those that are written, or else all methods of a network."""
        choice = self.workloads[workload]
        is_written = "phases" in choice.model_fields_set or workload not in self._networks
        return choice.phases if is_written else self._networks[workload].timed

    @property
    def phase_names(self) -> tuple[str, ...]:
        """The phases of the program, and then those that model files name."""
        of_networks = (phase for network in self._networks.values() for phase in network.own_phases)
        return tuple(dict.fromkeys((*PHASE_NAMES, *of_networks)))

    @property
    def follows(self) -> Mapping[str, str]:
        """Variant -> the environment with which it is selected, and excluded: those that ``--threads 1,2`` adds."""
        return self._follows

    @property
    def architecture(self) -> Architecture:
        """What the builds of its environments are for."""
        return self._architecture

    @property
    def as_is(self) -> frozenset[str]:
        """The environments that are interpreters and images as they are: nothing says which packages they have."""
        return self._as_is

    def image_of(self, name: str) -> str:
        """Return the environment whose image another has: that which it extends by variables alone, or itself."""
        name = without_variant(name)
        extended = self.environments[name].extends
        return name if extended not in self.environments or self.environments[name].add else extended

    def launch_of(self, name: str) -> Launch:
        """Return how the processes of an environment are started."""
        image, environment = self.image_of(name), self.environments[name]
        threads = self._threads.get(name, 0)
        if image == name and not environment.env and not threads:
            return USUAL_LAUNCH
        return Launch(image="" if image == name else image, variables=environment.env, threads=threads)

    def with_environments(
        self, environments: Mapping[str, Environment], threads: Mapping[str, int], follows: Mapping[str, str]
    ) -> "Matrix":
        """Return a copy with these environments alone; ``threads`` and ``follows`` are of the variants among them."""
        copy = self.model_copy(update={"environments": dict(environments)})
        copy._threads = {**self._threads, **threads}  # noqa: SLF001  a new matrix that nobody else has
        copy._follows = {**self._follows, **follows}  # noqa: SLF001
        return copy

    def for_architecture(self, architecture: Architecture) -> "Matrix":
        """Return the matrix with the builds for an architecture; this one is as the file has it, for x86_64."""
        if architecture == self._architecture:
            return self
        environments = {name: each.for_architecture(architecture) for name, each in self.environments.items()}
        copy = self.model_copy(update={"environments": environments})
        copy._architecture = architecture  # noqa: SLF001  a new matrix that nobody else has
        return copy

    def with_as_is(self, environments: Mapping[str, Environment]) -> "Matrix":
        """Return a copy that has interpreters and images as they are, too."""
        copy = self.model_copy(update={"environments": {**self.environments, **environments}})
        copy._as_is = self._as_is | environments.keys()  # noqa: SLF001  a new matrix that nobody else has
        return copy

    def with_networks(self, networks: Mapping[str, Network], **update: object) -> "Matrix":
        """Return a copy that has these networks, too; ``update`` replaces keys of the matrix."""
        copy = self.model_copy(update=update)
        together = {**self._networks, **networks}
        cases = dict(CASES)
        for name, network in together.items():
            cases.update(network.specs(name))
        copy._networks, copy._cases = together, cases  # noqa: SLF001  a new matrix that nobody else has
        return copy

    @field_validator("version", mode="before")
    @classmethod
    def _is_a_number(cls, value: object) -> object:
        return value if type(value) is int else repr(value)  # in Python, 1 equals True and 1.0


def schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a matrix file; a fresh dict each time."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    model = Matrix.model_json_schema()
    names = [{"enum": list(WORKLOADS)}, {"pattern": f"^{NETWORK_NAME.pattern}$"}]
    model["properties"]["workloads"]["propertyNames"] = {"anyOf": names}
    environment = model["$defs"]["Environment"]
    extensions = ({"required": ["extends", key]} for key in ("add", "env"))
    environment["anyOf"] = [{"required": environment.pop("required")}, *extensions]
    environment["properties"]["env"]["propertyNames"] = {"pattern": f"^{NAME.pattern}$"}
    return head | model | {"title": "matrix.yaml"}
