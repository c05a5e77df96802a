"""``runner build``: make the environments of a plan without measuring, and push their images to the team's registry."""

from collections.abc import Mapping

from runner.core.errors import Problem, ProvisionError, UsageError
from runner.core.progress import Progress
from runner.session import execution as pipeline
from runner.session.context import Context, prepared
from runner.session.options import Options


def build(options: Options, progress: Progress, *, push: bool) -> Mapping[str, ProvisionError]:
    """Make the environments; return the errors of those that failed.

    Args:
        options: what the user typed.
        progress: shows the work.
        push: also push each image that the registry of the matrix lacks, and write all of them to
            ``docker/images.toml``.

    Raises:
        UsageError: nothing can be pushed: the matrix names no registry, or the backend makes no images.
        NothingSelectedError: nothing of the plan can run.
        EngineError: the engine stopped answering.
    """
    context, preparation = prepared(options, progress.note)
    if push:
        _publish(context)
    ready, failed = pipeline.build(preparation, context.backend, progress)
    for name, environment in ready.items():
        if push:
            progress.note(f"{name}: {environment.facts.get('team_image') or 'the matrix names its image: not pushed'}")
    return failed


def _publish(context: Context) -> None:
    """Have the backend push what it makes; raises UsageError where it cannot."""
    from runner.backends.docker.backend import DockerBackend

    if not isinstance(context.backend, DockerBackend):
        message = f"--push pushes images, and the backend {context.backend.name} makes none"
        raise UsageError(Problem(message, hint="start a container engine, and use --backend docker"))
    if context.matrix.registry is None:
        hint = "write registry: and the repository, such as registry.example.com/team/matrix-runner"
        raise UsageError(Problem(f"{context.settings.file} names no registry", hint=hint))
    context.backend.publish_to(context.matrix.registry)
