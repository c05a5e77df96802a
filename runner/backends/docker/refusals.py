"""Why a registry does not give or take an image: what the message of an engine means, and what to do about it."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from runner.backends.docker.image_names import registry
from runner.backends.docker.watch import MEMORY_SIGN
from runner.core.errors import Problem
from runner.core.text import REASON_LENGTH, printable

NAME_SERVER = re.compile(r" on [0-9a-f.:\[\]]+:53\b")
"""Part of an engine's messages. Reports are shared, and must not show the name server of this network."""


class Refusal(NamedTuple):
    """Why a registry does not give or take an image.

    Attributes:
        kind: a key of ``REFUSALS``, or ``other``.
        problem: what happened, and what to do.
    """

    kind: str
    problem: Problem

    @property
    def passing(self) -> bool:
        """True where it says nothing about the image, but about a network, a disk or this host's settings."""
        return self.kind in PASSING

    @property
    def reason(self) -> str:
        """What happened and what to do, on one line."""
        return "; ".join(filter(None, (self.problem.message, self.problem.hint)))


REFUSALS: Mapping[str, tuple[tuple[str, ...], str, str]] = {
    "http": (
        ("server gave http response to https client",),
        "{registry} answers without TLS, which engines accept on loopback only",
        "give the registry a certificate, or name it in `insecure-registries` of every engine",
    ),
    "certificate": (
        ("x509:", "tls: "),
        "the engine does not trust the certificate of {registry}",
        "put the certificate of its authority into /etc/docker/certs.d/{registry}/ca.crt on every host",
    ),
    "login": (
        ("unauthorized", "no basic auth credentials", "authentication required"),
        "{registry} wants a login",
        "`docker login {registry}` as this user, on every host",
    ),
    "denied": (
        ("denied", "403 forbidden", "operation is unsupported", "method not allowed"),
        "{registry} denies the access to {image}",
        "ask its owner for the right, or check the name",
    ),
    "missing": (
        ("manifest unknown", "name unknown", "not found", "does not exist"),
        "{registry} does not have {image}",
        "`runner build --push` pushes it again",
    ),
    "damaged": (
        ("verification failed", "digest did not match", "did not match digest", "invalid checksum"),
        "{registry} returned other bytes than {image} stands for, and they were not used",
        "look into the registry: its storage or the way to it is damaged, or somebody has changed it",
    ),
    "disk": (("no space left on device",), "a disk is full", "free space where `docker system df` shows it"),
    "memory": (
        (MEMORY_SIGN,),
        "{registry} answers more about {image} than this machine has memory for, or others took it",
        "look into the registry; if the engine's memory still grows, restart it; or free memory, and try again",
    ),
    "unreachable": (
        ("connection refused", "no such host", "no answer within", "timeout", "deadline exceeded", "no route to host",
         "network is unreachable", "temporary failure in name resolution"),
        "{registry} does not answer",
        "check the name, and that the engine's host reaches it",
    ),
    "limit": (
        ("toomanyrequests", "too many requests"),
        "{registry} gives no more images for now",
        "wait, or `docker login {registry}`",
    ),
    "interrupted": (
        ("eof", "connection reset", "broken pipe", "received unexpected http status: 5", "blob"),
        "{registry} failed, or the connection to it broke off",
        "try again: what has arrived is not sent again",
    ),
}  # fmt: skip
"""Kind -> parts of the message of an engine or a registry, in small letters; a sentence; and what to do."""


PASSING = frozenset({"http", "certificate", "disk", "memory", "unreachable", "limit", "interrupted"})
"""Kinds of refusals that are none of the image. Registries refuse a login for images that they do not have, too."""


def refusal(image: str, message: str) -> Refusal:
    """Return what an engine's message about an image and its registry means."""
    host, lower = registry(image), message.lower()
    for kind, (signs, text, hint) in REFUSALS.items():
        if any(sign in lower for sign in signs):
            names = {"registry": host, "image": image}
            return Refusal(kind, Problem(text.format(**names), hint=hint.format(**names)))
    message = printable(NAME_SERVER.sub("", message), REASON_LENGTH)
    return Refusal("other", Problem(f"{host} refuses {image}: {message}", hint="the registry's log may say more"))
