"""What the files of a project say of its images: the Dockerfile, the lock and the base that each is built from."""

from pathlib import Path

from runner.backends import harness_archive
from runner.backends.docker.image_names import UNPINNED, pinned, pins
from runner.backends.docker.options import Recipe
from runner.backends.lock_file import lock_skip, read_lock
from runner.core.errors import Problem, ProvisionError
from runner.core.files import read_bounded
from runner.core.model import Skip, Spec
from runner.core.outages import is_passing_error
from runner.core.paths import packaged_folder

MAX_FILE = 4 << 20  # bytes of a Dockerfile; the largest of this project has 4 KiB
EXTENDED = "extended.Dockerfile"
"""Builds an environment on the image of the one that it adds packages to."""
WITH_HASHES = b"pip install --require-hashes"
"""How a Dockerfile installs a lock."""
NO_DEPS = b" --no-deps"
"""Has pip ignore what the packages of a lock require, see ``LockFile.needs_no_deps``."""


class Recipes:
    """The recipes of a project's images."""

    def __init__(self, folder: Path) -> None:
        """Read ``pins.toml`` of a folder that holds a Dockerfile for each framework family.

        What the folder lacks is taken from the Dockerfiles and pins that come with the program.

        Raises:
            UsageError: the pins cannot be read.
        """
        self._folders = (folder, packaged_folder() / folder.name)
        self._pins = pins(self._file("pins.toml"))

    def unmakeable(self, spec: Spec) -> Skip | None:
        """Return why an environment cannot be made, None if its lock, base image and Dockerfile are there."""
        if spec.image is not None:
            return None
        if (skip := lock_skip(spec)) is not None:
            return skip
        if spec.base is None or not self._dockerfile(spec).is_file():
            missing = "base image" if spec.base is None else f"Dockerfile {self._dockerfile(spec)}"
            return Skip("image-unavailable", f"{spec.environment} has no {missing} to be built from")
        return None

    def source(self, spec: Spec) -> str:
        """Return the image to pull for an environment that can be made, its own or its base; pinned if it has a pin.

        An image that is measured as it is is the one that the engine has by this name.
        """
        name = spec.image or spec.base
        assert name is not None
        if spec.interpreter:
            return name
        return pinned(name, self._pins)

    def pin(self, name: str) -> str:
        """Return the digest that an image is pinned to, else ``UNPINNED``."""
        return self._pins.get(name, UNPINNED)

    def recipe(self, spec: Spec, base_id: str | None) -> Recipe | None:
        """Return what an image is built from; None if that is unknown: its base has no pin, and the engine lacks it.

        Args:
            spec: an environment with a lock and a base.
            base_id: the id of the base on the engine; None if the engine lacks it.

        Raises:
            ProvisionError: the lock or the Dockerfile cannot be read.
        """
        assert spec.base is not None
        known = self._pins.get(spec.base, base_id)
        return None if known is None else self._recipe(spec, known)

    def named(self, spec: Spec) -> Recipe:
        """Return the recipe as the project's files alone tell it, the same on every host.

        A base without a pin counts by its name. Raises as ``recipe`` does.
        """
        assert spec.base is not None
        return self._recipe(spec, self._pins.get(spec.base, spec.base))

    def _recipe(self, spec: Spec, base_id: str) -> Recipe:
        assert spec.lock is not None
        assert spec.base is not None
        if spec.extends is not None:
            return self._extended(spec, spec.extends, base_id)
        content, lock = read_lock(spec.lock)
        dockerfile = _content(self._dockerfile(spec))
        return Recipe(
            environment=spec.environment,
            dockerfile=dockerfile.replace(WITH_HASHES, WITH_HASHES + NO_DEPS) if lock.needs_no_deps else dockerfile,
            lock=content,
            base=pinned(spec.base, self._pins),
            base_id=base_id,
        )

    def _extended(self, spec: Spec, other: Spec, base_id: str) -> Recipe:
        """Return the recipe of an environment that adds packages to another; it depends on the recipe of that one."""
        assert spec.lock is not None
        below = self._recipe(other, base_id)
        return Recipe(
            environment=spec.environment,
            dockerfile=_content(self._file(EXTENDED)),
            lock=read_lock(spec.lock)[0],
            base=below.tag,
            base_id=below.tag,
            added=spec.added,
            program=_content(harness_archive.ADDED),
        )

    def _dockerfile(self, spec: Spec) -> Path:
        return self._file(f"{spec.framework}.Dockerfile")

    def _file(self, name: str) -> Path:
        """Return a file of the project, or that of the program where the project has none."""
        paths = [folder / name for folder in self._folders]
        return next((path for path in paths if path.is_file()), paths[0])


def _content(path: Path) -> bytes:
    try:
        return read_bounded(path, MAX_FILE)
    except OSError as error:
        problem = Problem(f"{path} cannot be read: {error.strerror or error}")
        raise ProvisionError("image-build", problem, passing=is_passing_error(error)) from error
