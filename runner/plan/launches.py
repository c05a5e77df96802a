"""Environments as they are started: several share an image, and each has its own variables."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TypeVar

from runner.core.model import Plan, Provisioned
from runner.core.variables import content_digest, digest_with

T = TypeVar("T")


def with_launches(plan: Plan, ready: Mapping[str, Provisioned], also: Collection[str] = ()) -> dict[str, Provisioned]:
    """Return the provisioned environments of a plan as they are started: with their variables, which identify them too.

    Environments that differ in those alone share what was provisioned. Those in ``also`` have their variables already.
    """
    started = dict(ready)
    for name, image in _of_images(plan, ready).items():
        if name in also:
            continue
        variables = plan.launch_of(name).variables
        digest = digest_with(content_digest(image.digest), variables)
        started[name] = replace(image, environment=name, variables=variables, digest=digest)
    return {name: environment for name, environment in started.items() if name in plan.frameworks}


def failed_launches(plan: Plan, failed: Mapping[str, T]) -> dict[str, T]:
    """Return what failed, also for the environments of a plan that share what could not be provisioned."""
    return {**failed, **_of_images(plan, failed)}


def _of_images(plan: Plan, by_image: Mapping[str, T]) -> dict[str, T]:
    """Return what is known of an image for each environment that is started in a way of its own."""
    images = {name: launch.image or name for name, launch in plan.launches.items()}
    return {name: by_image[image] for name, image in images.items() if image in by_image}
