"""What a build does on a GPU with its driver: pure functions on facts, and a sentence where something is in the way."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from runner.catalog.hardware.facts import Base, Build, Fact, base, branch, cudnn, generation, toolkit
from runner.catalog.hardware.versions import Capability, dotted, release, series
from runner.core.model import Gpu

Word = Literal["runs", "jit", "cannot"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a build does on a GPU.

    Attributes:
        word: ``runs``, ``jit`` (by compiling its PTX for the GPU, so the first call is slow) or ``cannot``.
        code: the skip code of what cannot.
        reason: why, in a sentence; empty for what runs.
        source: where the facts behind it are from.
        meant: the PTX was made for just this capability, so the build's makers meant it to run there.
    """

    word: Word
    code: str = ""
    reason: str = ""
    source: str = ""
    meant: bool = False


RUNS = Verdict("runs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a build is put into.

    Attributes:
        cuda: the CUDA version it carries, by the matrix; ``cudnn`` likewise, None where it is not said.
        python: the interpreter's version; None where an image brings its own.
        image: the image it is in or built on; None where it is in none.
        glibc: the machine's C library, for what is in no image; None where it is not known.
    """

    gpu: Gpu
    cuda: str
    cudnn: str | None = None
    python: str | None = None
    image: str | None = None
    glibc: str | None = None


def judge(build: Build | None, setting: Setting) -> Verdict:
    """Return what a build does; of several things in the way the first, in the order of ``RULES``.

    Of a build that nothing is known of, None, the driver is judged by the CUDA version alone, and the rest is tried.
    """
    result = RUNS
    for rule in RULES:
        verdict = rule(build, setting)
        if verdict is not None and verdict.word == "cannot":
            return verdict
        result = verdict or result
    return result


def native(build: Build, capability: Capability) -> Capability | None:
    """Return the newest native code that a GPU runs: of its own major number, and of no higher minor one.

    Source: CUDA C++ Programming Guide, binary compatibility.
    """
    return max((code for code in build.sass if code[0] == capability[0] and code <= capability), default=None)


def portable(build: Build, capability: Capability) -> Capability | None:
    """Return the newest intermediate code that the driver can compile for a GPU: of its own capability or an older one.

    Source: CUDA C++ Programming Guide, PTX compatibility.
    """
    return max((code for code in build.ptx if code <= capability), default=None)


def _interpreter(build: Build | None, setting: Setting) -> Verdict | None:
    if build is None or setting.python is None or not build.python or setting.python in build.python:
        return None
    known = f"{', '.join(build.python[:-1])} and {build.python[-1]}" if len(build.python) > 1 else build.python[0]
    reason = f"{build.name} has no wheel for Python {setting.python}, but for {known}"
    return _cannot("framework-lacks", reason, build, "python")


def _holds_gpu_code(build: Build | None, _: Setting) -> Verdict | None:
    if build is None or build.sass or build.ptx:
        return None
    reason = f"{build.name} holds no code for GPUs{_note(build)}"
    return _cannot("needs-gpu", reason, build, "sass", "ptx")


def has_code_for_it(build: Build | None, setting: Setting) -> Verdict | None:
    """Return what a build does by its code alone, whatever the driver: None where it holds what the GPU runs."""
    capability = setting.gpu.capability
    if build is None or native(build, capability):
        return None
    newest, codes = portable(build, capability), (*build.sass, *build.ptx)
    if newest is None:
        ends = f"oldest is {dotted(min(codes))}" if capability < min(codes) else f"newest is {dotted(max(codes))}"
        reason = f"{build.name} has no code for {_named(setting.gpu)}; its {ends}"
        return _cannot("arch", reason, build, "sass", "ptx")
    reason = f"{build.name} has no code made for {_named(setting.gpu)}"
    if build.fails_from and capability >= build.fails_from:
        reason += f", and its PTX {dotted(newest)} does not run there{_note(build)}"
        return _cannot("arch", reason, build, "sass", "fails_from")
    reason += f", only PTX {dotted(newest)}{_note(build)}"
    if build.unprobed_from and capability >= build.unprobed_from:
        return Verdict("jit", reason=f"{reason}, which nobody has seen run there (unverified)", source=build.source)
    reason = _marked(reason, build, "sass", "ptx")
    return Verdict("jit", reason=reason, source=build.source, meant=newest == capability)


def _driver_is_new_enough(build: Build | None, setting: Setting) -> Verdict | None:
    driver = setting.gpu.driver
    by_jit = build is not None and native(build, setting.gpu.capability) is None
    known = toolkit(build.cuda if build and by_jit and build.cuda else setting.cuda)
    if known is None or release(driver) >= release(known.driver if by_jit else known.oldest):
        return None
    if build is None or not by_jit:
        reason = f"CUDA {setting.cuda} needs driver {known.oldest} or newer, and the driver is {driver}"
        return _cannot("driver", reason, known, "oldest")
    brings = branch(driver)
    with_cuda = f" (CUDA {brings.cuda})" if brings else ""
    reason = (
        f"{build.name} has only PTX for {_named(setting.gpu)}, which driver {driver}{with_cuda} cannot compile: "
        f"{known.driver} is the first that can"
    )
    return _cannot("driver", reason, known, "driver", of=build)


def _driver_drives_it(_: Build | None, setting: Setting) -> Verdict | None:
    gpu, known = setting.gpu, generation(setting.gpu.capability)
    if known is None:
        return None
    if known.last and release(gpu.driver)[:1] > release(known.last):
        reason = f"driver {gpu.driver} no longer drives {gpu.name} ({known.name}): branch {known.last} is the last"
        return _cannot("driver", reason, known, "last")
    if known.first and release(gpu.driver) < release(known.first):
        reason = f"driver {gpu.driver} does not know {gpu.name} ({known.name}): {known.first} is the first that does"
        return _cannot("driver", reason, known, "first")
    return None


def _library_is_new_enough(build: Build | None, setting: Setting) -> Verdict | None:
    known = base(setting.image) if setting.image else None
    glibc = known.glibc if known else setting.glibc if setting.image is None else None
    if build is None or not build.glibc or not glibc or release(glibc) >= release(build.glibc):
        return None
    where = setting.image or "the machine"
    reason = f"{build.name} needs glibc {build.glibc} or newer, and {where} has {glibc}"
    unsure = known is not None and "glibc" in known.unverified
    source = f"{build.source}; {known.source}" if known else build.source
    return Verdict("cannot", "image-unavailable", reason + " (unverified)" * unsure, source)


def _image_has_its_cudnn(build: Build | None, setting: Setting) -> Verdict | None:
    known: Base | None = base(setting.image) if setting.image else None
    if build is None or known is None or not known.cudnn or not build.cudnn:
        return None
    if release(known.cudnn)[:1] == release(build.cudnn)[:1]:
        return None
    reason = f"{setting.image} carries cuDNN {series(known.cudnn)}, and {build.name} needs {series(build.cudnn)}"
    return _cannot("image-unavailable", f"{reason}: it would compute on the CPU", known, "cudnn")


def by_cudnn(setting: Setting) -> Verdict | None:
    """Return why what calls cuDNN cannot run, None where it can, or where nothing is known of that cuDNN."""
    known = cudnn(setting.cudnn) if setting.cudnn else None
    if known is None or setting.gpu.capability >= known.oldest:
        return None
    last = f": {known.last} is the last that does" if known.last else ""
    return _cannot("arch", f"cuDNN {setting.cudnn} does not serve {_named(setting.gpu)}{last}", known, "oldest")


RULES: tuple[Callable[[Build | None, Setting], Verdict | None], ...] = (
    _interpreter,
    _holds_gpu_code,
    has_code_for_it,
    _driver_is_new_enough,
    _driver_drives_it,
    _library_is_new_enough,
    _image_has_its_cudnn,
)


def _cannot(code: str, reason: str, fact: Fact, *columns: str, of: Build | None = None) -> Verdict:
    """Return a refusal by a fact; ``of`` is a build on which it rests, too."""
    source = f"{of.source}; {fact.source}" if of else fact.source
    return Verdict("cannot", code, _marked(reason, fact, *columns), source)


def _marked(reason: str, fact: Fact, *columns: str) -> str:
    return f"{reason} (unverified)" if fact.unverified & set(columns) else reason


def _note(build: Build) -> str:
    return f": {build.note}" if build.note else ""


def _named(gpu: Gpu) -> str:
    return f"{gpu.name} (compute capability {dotted(gpu.capability)})"
