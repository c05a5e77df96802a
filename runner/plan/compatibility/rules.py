"""Decide whether a build runs on a GPU with its driver: pure functions on facts that return a verdict with a reason.

Sources: CUDA C++ Programming Guide, binary and PTX compatibility; CUDA Compatibility guide, minor-version
compatibility. The facts of a verdict have sources of their own, which it repeats.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from runner.catalog.hardware.builds import Build
from runner.catalog.hardware.facts import BaseImage, base_image, branch, cudnn, generation, precision_support, toolkit
from runner.catalog.hardware.tables import HardwareFact
from runner.catalog.hardware.versions import Capability, format_capability, series, version_numbers
from runner.core.model import Gpu, Skip

Outcome = Literal["runs", "jit", "cannot"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a build runs on a GPU.

    Attributes:
        outcome: ``runs``, ``jit`` (the driver compiles the build's PTX at the first call, which is slow) or ``cannot``.
        code: the skip code of ``cannot``; empty otherwise.
        reason: why, in a sentence; empty for ``runs``.
        source: where the facts behind the verdict are from.
        made_for_gpu: the PTX was made for just this compute capability, so the build is meant to run by JIT there.
    """

    outcome: Outcome
    code: str = ""
    reason: str = ""
    source: str = ""
    made_for_gpu: bool = False


RUNS = Verdict("runs")


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildTarget:
    """What a build would run with.

    Attributes:
        gpu: the GPU with its driver.
        cuda: the CUDA version of the build, as the matrix has it.
        cudnn: its cuDNN version; None if the matrix does not name one.
        python: the version of the interpreter; None if an image brings its own.
        image: the image that holds the build or is its base; None outside of containers.
        glibc: the version of the machine's C library, for a build outside of images; None if unknown.
    """

    gpu: Gpu
    cuda: str
    cudnn: str | None = None
    python: str | None = None
    image: str | None = None
    glibc: str | None = None


def judge(build: Build | None, target: BuildTarget) -> Verdict:
    """Return whether a build runs on a target; of several obstacles the first in the order of ``RULES``.

    If nothing is known of the build (None), only the driver is judged, by the CUDA version.
    """
    result = RUNS
    for rule in RULES:
        verdict = rule(build, target)
        if verdict is not None and verdict.outcome == "cannot":
            return verdict
        result = verdict or result
    return result


def native_code(build: Build, capability: Capability) -> Capability | None:
    """Return the newest native code (SASS) of a build that a GPU runs; None if it has none.

    A GPU runs code of its own major capability and of the same or a lower minor one (CUDA C++ Programming Guide,
    binary compatibility).
    """
    return max((code for code in build.sass if code[0] == capability[0] and code <= capability), default=None)


def ptx_code(build: Build, capability: Capability) -> Capability | None:
    """Return the newest intermediate code (PTX) of a build that a driver can compile for a GPU; None if it has none.

    That is code for the GPU's own capability or an older one (CUDA C++ Programming Guide, PTX compatibility).
    """
    return max((code for code in build.ptx if code <= capability), default=None)


def _interpreter(build: Build | None, target: BuildTarget) -> Verdict | None:
    if build is None or target.python is None or not build.python or target.python in build.python:
        return None
    known = f"{', '.join(build.python[:-1])} and {build.python[-1]}" if len(build.python) > 1 else build.python[0]
    reason = f"{build.name} has no wheel for Python {target.python}, only for {known}"
    return _cannot("framework-lacks", reason, build, "python")


def _holds_gpu_code(build: Build | None, _: BuildTarget) -> Verdict | None:
    if build is None or build.sass or build.ptx:
        return None
    reason = f"{build.name} contains no GPU code{_note(build)}"
    return _cannot("needs-gpu", reason, build, "sass", "ptx")


def code_verdict(build: Build | None, target: BuildTarget) -> Verdict | None:
    """Return the verdict on a build's code alone, whatever the driver; None if it has native code for the GPU."""
    capability = target.gpu.capability
    if build is None or native_code(build, capability):
        return None
    newest, codes = ptx_code(build, capability), (*build.sass, *build.ptx)
    if newest is None:
        label, code = ("oldest", min(codes)) if capability < min(codes) else ("newest", max(codes))
        reason = f"{build.name} has no code for {_gpu_name(target.gpu)}; its {label} is {format_capability(code)}"
        return _cannot("arch", reason, build, "sass", "ptx")
    reason = f"{build.name} has no code made for {_gpu_name(target.gpu)}"
    if build.fails_from and capability >= build.fails_from:
        reason += f", and its PTX {format_capability(newest)} does not run there{_note(build)}"
        return _cannot("arch", reason, build, "sass", "fails_from")
    note = "" if build.fails_from else _note(build)  # such a note is about the GPUs on which it fails
    reason += f", only PTX {format_capability(newest)}{note}"
    if build.unprobed_from and capability >= build.unprobed_from:
        return Verdict("jit", reason=f"{reason}, which is not known to run there (unverified)", source=build.source)
    reason = _with_caveat(reason, build, "sass", "ptx")
    return Verdict("jit", reason=reason, source=build.source, made_for_gpu=newest == capability)


def _driver_is_new_enough(build: Build | None, target: BuildTarget) -> Verdict | None:
    driver = target.gpu.driver
    by_jit = build is not None and native_code(build, target.gpu.capability) is None
    known = toolkit(build.cuda if build and by_jit and build.cuda else target.cuda)
    # Native code runs by minor-version compatibility; only the driver of the toolkit or a newer one compiles its PTX.
    if known is None or version_numbers(driver) >= version_numbers(known.driver if by_jit else known.oldest):
        return None
    if build is None or not by_jit:
        reason = f"CUDA {target.cuda} needs driver {known.oldest} or newer; the driver is {driver}"
        return _cannot("driver", reason, known, "oldest")
    driver_branch = branch(driver)
    with_cuda = f" (CUDA {driver_branch.cuda})" if driver_branch else ""
    reason = (
        f"{build.name} has only PTX for {_gpu_name(target.gpu)}, which driver {driver}{with_cuda} cannot compile; "
        f"driver {known.driver} or newer can"
    )
    return _cannot("driver", reason, known, "driver", of=build)


def _driver_drives_it(_: Build | None, target: BuildTarget) -> Verdict | None:
    gpu, known = target.gpu, generation(target.gpu.capability)
    if known is None:
        return None
    if known.last and version_numbers(gpu.driver)[:1] > version_numbers(known.last):
        last = f"branch {known.last} is the last that does"
        reason = f"driver {gpu.driver} no longer supports {gpu.name} ({known.name}): {last}"
        return _cannot("driver", reason, known, "last")
    if known.first and version_numbers(gpu.driver) < version_numbers(known.first):
        first = f"{known.first} is the first that does"
        reason = f"driver {gpu.driver} does not support {gpu.name} ({known.name}): {first}"
        return _cannot("driver", reason, known, "first")
    return None


def _library_is_new_enough(build: Build | None, target: BuildTarget) -> Verdict | None:
    known = base_image(target.image) if target.image else None
    glibc = known.glibc if known else target.glibc if target.image is None else None
    if build is None or not build.glibc or not glibc or version_numbers(glibc) >= version_numbers(build.glibc):
        return None
    where = target.image or "the machine"
    reason = f"{build.name} needs glibc {build.glibc} or newer; {where} has {glibc}"
    unsure = known is not None and "glibc" in known.unverified
    source = f"{build.source}; {known.source}" if known else build.source
    return Verdict("cannot", "image-unavailable", reason + " (unverified)" * unsure, source)


def _image_has_its_cudnn(build: Build | None, target: BuildTarget) -> Verdict | None:
    known: BaseImage | None = base_image(target.image) if target.image else None
    if build is None or known is None or not known.cudnn or not build.cudnn:
        return None
    if version_numbers(known.cudnn)[:1] == version_numbers(build.cudnn)[:1]:
        return None
    reason = f"{target.image} has cuDNN {series(known.cudnn)}; {build.name} needs {series(build.cudnn)}"
    return _cannot("image-unavailable", f"{reason} and would compute on the CPU", known, "cudnn")


def cudnn_refusal(target: BuildTarget) -> Verdict | None:
    """Return why code that calls cuDNN cannot run; None if it can, or if nothing is known of that cuDNN."""
    known = cudnn(target.cudnn) if target.cudnn else None
    if known is None or target.gpu.capability >= known.oldest:
        return None
    last = f": {known.last} is the last that does" if known.last else ""
    return _cannot("arch", f"cuDNN {target.cudnn} does not support {_gpu_name(target.gpu)}{last}", known, "oldest")


def precision_refusal(precision: str, gpu: Gpu) -> Skip | None:
    """Return why a GPU does not compute in a precision; None if it does.

    A framework does not refuse: on a GPU without TF32 it computes in single precision, and some emulate bf16. The
    figures would be labelled wrongly.
    """
    known = precision_support(precision)
    if known is None or gpu.capability >= known.oldest:
        return None
    reason = f"{_gpu_name(gpu)} does not compute {precision}: GPUs from compute capability "
    return Skip("precision-lacks", f"{reason}{format_capability(known.oldest)} on do", known.source)


def cudnn_warning(target: BuildTarget) -> str:
    """Return a sentence if the GPU is newer than all code of its cuDNN: what calls it will probably fail; else empty.

    A framework's own PTX does not help there: cuDNN is a library of its own.
    """
    known = cudnn(target.cudnn) if target.cudnn else None
    if known is None or known.newest is None or target.gpu.capability <= known.newest:
        return ""
    reason = (
        f"convolutions and recurrent layers of cuDNN {target.cudnn} will probably fail, even after the JIT: its newest "
        f"code is for compute capability {format_capability(known.newest)}, and it has no PTX"
    )
    return _with_caveat(reason, known, "newest")


RULES: tuple[Callable[[Build | None, BuildTarget], Verdict | None], ...] = (
    _interpreter,
    _holds_gpu_code,
    code_verdict,
    _driver_is_new_enough,
    _driver_drives_it,
    _library_is_new_enough,
    _image_has_its_cudnn,
)


def _cannot(code: str, reason: str, fact: HardwareFact, *columns: str, of: Build | None = None) -> Verdict:
    """Return a refusal that rests on columns of a fact; and on a build, if ``of`` is given."""
    source = f"{of.source}; {fact.source}" if of else fact.source
    return Verdict("cannot", code, _with_caveat(reason, fact, *columns), source)


def _with_caveat(reason: str, fact: HardwareFact, *columns: str) -> str:
    """Return a reason, with "(unverified)" at the end if nobody has checked one of the columns it rests on."""
    return f"{reason} (unverified)" if fact.unverified & set(columns) else reason


def _note(build: Build) -> str:
    return f": {build.note}" if build.note else ""


def _gpu_name(gpu: Gpu) -> str:
    return f"{gpu.name} (compute capability {format_capability(gpu.capability)})"
