"""The file that names the images of a team's registry, and what the messages of engines and registries mean."""

from pathlib import Path

import pytest

from runner.backends.docker.cleanup import unneeded_images_and_volumes
from runner.backends.docker.images import NO_PUSH
from runner.backends.docker.options import ENVIRONMENT, OWNER, Recipe
from runner.backends.docker.recipes import Recipes
from runner.backends.docker.refusals import REFUSALS, refusal
from runner.backends.docker.registry import TeamImages
from runner.backends.docker.watch import MEMORY_SIGN
from runner.core.errors import ProvisionError, UsageError
from runner.core.model import Spec

TEAM = "registry.example:5000/team/runner"
IMAGE = f"{TEAM}@sha256:{'0a' * 32}"
RECIPE = Recipe(environment="np-2.x", dockerfile=b"FROM x", lock=b"numpy", base="python:3.11", base_id="sha256:1")


def test_an_image_is_found_again_by_what_it_was_built_from(tmp_path: Path) -> None:
    path = tmp_path / "images.toml"
    assert TeamImages(path, TEAM).image(RECIPE, "amd64") is None
    TeamImages(path, TEAM).add(RECIPE, "amd64", IMAGE)
    images = TeamImages(path, TEAM)
    assert images.image(RECIPE, "amd64") == IMAGE
    assert images.image(RECIPE, "arm64") is None
    assert images.other_architectures(RECIPE) == ("amd64",)
    changed = Recipe(environment="np-2.x", dockerfile=b"FROM x", lock=b"other", base="python:3.11", base_id="sha256:1")
    assert images.image(changed, "amd64") is None
    assert images.other_architectures(changed) == ()


@pytest.mark.parametrize("registry", [None, "registry.example:5000/team", f"{TEAM}/more", "evil.example/team/runner"])
def test_an_image_of_another_repository_than_that_of_the_matrix_is_not_used(
    tmp_path: Path, registry: str | None
) -> None:
    path = tmp_path / "images.toml"
    TeamImages(path, TEAM).add(RECIPE, "amd64", IMAGE)
    images = TeamImages(path, registry)
    assert images.image(RECIPE, "amd64") is None
    its = f"the registry of the matrix is {registry}" if registry else "the matrix has no registry"
    assert images.why_none(RECIPE, "amd64") == f"images.toml names {TEAM}, and {its}"
    assert images.why_none(RECIPE, "arm64") == "images.toml has an image for amd64, and this engine is arm64"
    assert TeamImages(tmp_path / "none.toml", registry).why_none(RECIPE, "amd64") == ""


def test_what_another_process_has_added_stays(tmp_path: Path) -> None:
    path = tmp_path / "images.toml"
    first, second = TeamImages(path, TEAM), TeamImages(path, TEAM)
    first.add(RECIPE, "amd64", IMAGE)
    second.add(RECIPE, "arm64", IMAGE)
    assert TeamImages(path, TEAM).other_architectures(RECIPE) == ("amd64", "arm64")
    assert path.read_text().startswith("# The images that `runner build --push` has pushed")


def test_a_file_that_cannot_be_written_is_a_problem_of_the_environment(tmp_path: Path) -> None:
    with pytest.raises(ProvisionError, match=r"images\.toml cannot be written"):
        TeamImages(tmp_path / "no" / "images.toml", TEAM).add(RECIPE, "amd64", IMAGE)


@pytest.mark.parametrize(
    "value",
    [
        *("1", '"registry.example/team:tag"', f'"{IMAGE[:-1]}"', f'"../containers/x@sha256:{"0" * 64}"', '""'),
        f'"https://alice:secret@registry.example/x@sha256:{"0" * 64}"',
    ],
)
def test_anything_but_a_repository_with_a_digest_is_refused(tmp_path: Path, value: str) -> None:
    path = tmp_path / "images.toml"
    path.write_text(f'[images]\n"np-\\u001b[2J" = {value}\n')
    with pytest.raises(UsageError, match=r"gives 'np-\\\\x1b\[2J' something that is not repository@sha256") as raised:
        TeamImages(path, TEAM)
    assert "secret" not in str(raised.value)
    assert raised.value.problems[0].hint


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "images.toml").write_text("[images")
    with pytest.raises(UsageError, match="is not TOML"):
        TeamImages(tmp_path / "images.toml", TEAM)


def test_the_files_of_a_project_give_the_same_recipe_on_every_host(tmp_path: Path) -> None:
    (tmp_path / "numpy.Dockerfile").write_text("FROM x")
    (tmp_path / "lock.txt").write_text("numpy==1 --hash=sha256:" + "0" * 64)
    spec = Spec(environment="np", framework="numpy", release="1", base="base:1", lock=tmp_path / "lock.txt")
    unpinned = Recipes(tmp_path)
    assert unpinned.recipe(spec, None) is None
    moved = [unpinned.recipe(spec, f"sha256:{number}") for number in (1, 2)]
    assert moved[0] is not None
    assert moved[1] is not None
    assert moved[0].tag != moved[1].tag
    (tmp_path / "pins.toml").write_text(f'[images]\n"base:1" = "sha256:{"2" * 64}"\n')
    pinned = Recipes(tmp_path)
    assert pinned.recipe(spec, None) == pinned.recipe(spec, "sha256:1") == pinned.named(spec)
    assert pinned.named(spec).tag != unpinned.named(spec).tag


HOST = "registry.example:5000"


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (f'Get "http://{HOST}/v2/": dial tcp 192.0.2.1:5000: connect: connection refused', "unreachable"),
        ('Get "https://x/v2/": dial tcp: lookup registry.example on 192.0.2.53:53: no such host', "unreachable"),
        ("no answer within 5 s (ReadTimeout)", "unreachable"),
        ("net/http: request canceled while waiting for connection (Client.Timeout exceeded)", "unreachable"),
        ("no basic auth credentials", "login"),
        ("unauthorized: authentication required", "login"),
        ("errors: denied: requested access to the resource is denied unauthorized: authentication required", "login"),
        ("denied: requested access to the resource is denied", "denied"),
        ("error parsing HTTP 405 response body: invalid character 'M': \"Method not allowed\\n\"", "denied"),
        (f'Get "https://{HOST}/v2/": http: server gave HTTP response to HTTPS client', "http"),
        ("x509: certificate signed by unknown authority", "certificate"),
        (f"manifest for {IMAGE} not found: manifest unknown: manifest unknown", "missing"),
        (f"manifest verification failed for digest sha256:{'401' * 21}", "damaged"),
        ("filesystem layer verification failed for digest sha256:00", "damaged"),
        ("failed to register layer: write /x: no space left on device", "disk"),
        ("unexpected EOF", "interrupted"),
        ("received unexpected HTTP status: 500 Internal Server Error", "interrupted"),
        (f"the pull was ended: 9.1 GB {MEMORY_SIGN} were gone, and 9.0 GB left", "memory"),
        ("something \x1b[2J else", "other"),
    ],
)
def test_messages_of_engines_become_sentences(message: str, kind: str) -> None:
    refused = refusal(IMAGE, message)
    assert refused.kind == kind
    assert refused.problem.hint
    assert "{" not in refused.problem.message + refused.problem.hint
    assert refused.problem.message.isprintable()
    assert "192.0.2.53" not in refused.problem.message
    assert set(REFUSALS) >= NO_PUSH


def test_a_login_names_the_registry() -> None:
    problem = refusal(IMAGE, "no basic auth credentials").problem
    assert problem.message == "registry.example:5000 wants a login"
    assert problem.hint == "`docker login registry.example:5000` as this user, on every host"


class Engine:
    """An engine with an image that was pulled, one that was built, and one that was built and pushed."""

    def __init__(self) -> None:
        """Answer as the SDK's client and its API."""
        self.api = self

    def containers(self, **_filters: object) -> list[object]:
        """Return none."""
        return []

    def df(self) -> dict[str, object]:
        """Return the images."""
        labels = {ENVIRONMENT: "np", OWNER: ""}
        common = {"Labels": labels, "Size": 5, "SharedSize": 1}
        return {
            "Images": [
                {"Id": "sha256:1", "RepoTags": None, "RepoDigests": [IMAGE], **common},
                {"Id": "sha256:2", "RepoTags": ["matrix-runner/np:0"], "RepoDigests": ["<none>@<none>"], **common},
                {"Id": "sha256:3", "RepoTags": ["matrix-runner/np:1"], "RepoDigests": ["other@sha256:0"], **common},
            ],
            "Volumes": [],
        }


@pytest.mark.parametrize(
    ("needed", "removed"),
    [
        ({IMAGE, "matrix-runner/np:0"}, ["matrix-runner/np:1"]),
        ({"other@sha256:0", None}, [IMAGE]),
        ({"matrix-runner/np:1"}, [IMAGE, "matrix-runner/np:0"]),
        ({IMAGE, None}, []),
    ],
)
def test_pulled_images_stay_while_the_project_names_them(needed: set[str | None], removed: list[str]) -> None:
    engine = Engine()
    leftovers = unneeded_images_and_volumes(engine, {"np": needed}, everything=False)  # type: ignore[arg-type]
    assert [left.name for left in leftovers] == removed
    reasons = {left.name: left.reason for left in leftovers}
    assert reasons.get(IMAGE, "docker/images.toml").startswith("docker/images.toml")
    everything = unneeded_images_and_volumes(engine, {"np": needed}, everything=True)  # type: ignore[arg-type]
    assert next(left.reason for left in everything) == "--all; np can be pulled again"
    assert len(everything) == 3
