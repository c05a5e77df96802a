"""What checkouts tell each other on an engine, which keeps it in memory here."""

from datetime import UTC, datetime
from typing import Any

import pytest
from docker.errors import APIError, NotFound

from runner.backends.docker import claims
from runner.backends.docker.cleanup import owner, unneeded_images_and_volumes
from runner.backends.docker.options import CACHE, CHECKOUT, ENVIRONMENT, OWNER, USE, cache_volume
from runner.backends.uses import RECENT_SECONDS, UNKNOWN, Checkout, Use, label

NOW = 2_000_000_000.0
MINE, OTHER = "host:/mine", "host:/other"
IMAGE = "sha256:" + "1a" * 32
SHORT = "1a1a1a1a1a1a"


class Response:
    """What the SDK keeps of an answer: its status code."""

    status_code = 500


class Engine:
    """An engine with volumes and images."""

    def __init__(self) -> None:
        """Have one image that another checkout has built, and none of its volumes."""
        self.api = self
        self.now = NOW
        self.full = False
        self.held: dict[str, str] = {}
        self.kept: dict[str, dict[str, Any]] = {}
        labels = {ENVIRONMENT: "np", OWNER: "", CHECKOUT: OTHER}
        self.images = [{"Id": IMAGE, "RepoTags": ["matrix-runner/np:0"], "Labels": labels, "Size": 5, "SharedSize": 1}]

    def inspect_volume(self, name: str) -> dict[str, Any]:
        """Return a volume."""
        if name not in self.kept:
            raise NotFound("no such volume")
        return self.kept[name]

    def create_volume(self, name: str, labels: dict[str, str]) -> None:
        """Make one."""
        if self.full:
            raise APIError("no space left on device", response=Response())  # type: ignore[arg-type]
        made = datetime.fromtimestamp(self.now, UTC).isoformat()
        self.kept[name] = {"Name": name, "Labels": labels, "CreatedAt": made, "UsageData": {"Size": 0, "RefCount": 0}}

    def remove_volume(self, name: str) -> None:
        """Remove one."""
        del self.kept[name]

    def volumes(self, filters: dict[str, str]) -> dict[str, Any]:
        """Return those with a label."""
        name, _, value = filters["label"].partition("=")
        return {"Volumes": [each for each in self.kept.values() if each["Labels"].get(name) == value]}

    def containers(self, **_options: object) -> list[dict[str, Any]]:
        """Return those that hold an image."""
        return [{"ImageID": image, "Labels": {OWNER: owner}} for image, owner in self.held.items()]

    def df(self) -> dict[str, Any]:
        """Return what takes room."""
        return {"Images": self.images, "Volumes": [*self.kept.values()]}


@pytest.fixture
def engine() -> Any:
    """An engine in memory."""
    return Engine()


def test_a_use_is_a_volume_with_the_image_and_the_checkout(engine: Any) -> None:
    for checkout in (MINE, OTHER):
        claims.note_use(engine, IMAGE, checkout, NOW)
    assert {each["Labels"][CHECKOUT] for each in engine.kept.values()} == {MINE, OTHER}
    assert claims.uses_of([*engine.kept.values()]) == {SHORT: (Use(MINE, NOW), Use(OTHER, NOW))}
    claims.forget_uses(engine, IMAGE)
    assert not engine.kept


def test_a_use_is_noted_again_when_it_is_old(engine: Any) -> None:
    claims.note_use(engine, IMAGE, MINE, NOW)
    for seconds, expected in ((claims.NOTED_SECONDS - 1, NOW), (claims.NOTED_SECONDS + 1, NOW + 3601)):
        engine.now = NOW + seconds
        claims.note_use(engine, IMAGE, MINE, engine.now)
        assert claims.uses_of([*engine.kept.values()]) == {SHORT: (Use(MINE, expected),)}


def test_an_engine_without_room_notes_nothing(engine: Any) -> None:
    engine.full = True
    claims.note_use(engine, IMAGE, MINE, NOW)
    assert not engine.kept


def test_volumes_without_a_time_or_labels_are_no_use(engine: Any) -> None:
    assert claims.uses_of([{"Name": "x", "Labels": None}, {"Name": "y", "Labels": {CACHE: "np"}}]) == {}
    odd = {"Name": "z", "Labels": {USE: SHORT, CHECKOUT: MINE}, "CreatedAt": "yesterday"}
    assert claims.uses_of([odd]) == {SHORT: (Use(MINE, 0.0),)}


def leftovers(engine: Any, checkout: Checkout, *, everything: bool) -> dict[str, tuple[str, ...]]:
    """Return name -> the other checkouts that need it, of what one checkout may remove; its matrix names nothing."""
    removable = unneeded_images_and_volumes(engine, {}, everything=everything, need=checkout.need)
    return {leftover.name: leftover.others for leftover in removable}


def test_what_another_user_of_the_engine_uses_is_kept_and_named(engine: Any, tmp_path: Any) -> None:
    """The other user has a cache of his own: only the engine knows of him."""
    mine = Checkout(tmp_path, now=lambda: NOW)
    engine.images[0]["Labels"][CHECKOUT] = label(tmp_path)
    volume = cache_volume(IMAGE, "cpu")
    engine.create_volume(volume, {CACHE: "np"})
    assert leftovers(engine, mine, everything=False) == {"matrix-runner/np:0": (), volume: ()}
    claims.note_use(engine, IMAGE, "another-host:/other", NOW)
    engine.now = NOW - 2 * RECENT_SECONDS
    assert leftovers(engine, mine, everything=False) == {}
    others = ("another-host:/other",)
    assert leftovers(engine, mine, everything=True) == {"matrix-runner/np:0": others, volume: others}


@pytest.mark.parametrize("digests", [[], ["registry.example/team@sha256:00"]])
def test_an_image_of_an_older_version_is_of_an_unknown_checkout(engine: Any, tmp_path: Any, digests: list[str]) -> None:
    """It names no checkout, or one of another machine where a registry has it: it is nobody's until it is used."""
    mine = Checkout(tmp_path, now=lambda: NOW)
    engine.images[0]["RepoDigests"] = digests
    if not digests:
        del engine.images[0]["Labels"][CHECKOUT]
    volume = cache_volume(IMAGE, "cpu")
    engine.create_volume(volume, {CACHE: "np"})
    for everything in (False, True):
        left = leftovers(engine, mine, everything=everything)
        assert left == {"matrix-runner/np:0": (UNKNOWN,), volume: (UNKNOWN,)}
    engine.now = NOW - 2 * RECENT_SECONDS
    claims.note_use(engine, IMAGE, label(tmp_path), engine.now)
    assert leftovers(engine, mine, everything=False) == {"matrix-runner/np:0": (), volume: ()}


def test_a_run_keeps_its_images_and_their_caches_whatever_may_go(engine: Any, tmp_path: Any) -> None:
    volume = cache_volume(IMAGE, "cpu")
    engine.create_volume(volume, {CACHE: "np"})
    engine.held[IMAGE] = "another-host:boot:1:2"
    assert leftovers(engine, Checkout(tmp_path), everything=True) == {}
    engine.held[IMAGE] = owner().rpartition(":")[0] + ":1"  # of a runner that was killed
    assert leftovers(engine, Checkout(tmp_path), everything=True).keys() == {"matrix-runner/np:0", volume}


def test_the_notes_about_an_image_that_is_gone_go(engine: Any, tmp_path: Any) -> None:
    claims.note_use(engine, IMAGE, MINE, NOW)
    engine.images = []
    (name,) = engine.kept
    assert leftovers(engine, Checkout(tmp_path), everything=False) == {name: ()}
