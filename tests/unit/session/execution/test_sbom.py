"""The bill of materials of an environment is valid by the schema of CycloneDX, and says what was installed."""

import json
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from runner.backends.lock_file import read_lock
from runner.core.model import Provisioned
from runner.session.execution.sbom import sbom, write_sbom

LOCKS = Path(__file__).parents[4] / "docker" / "locks"
AT = "2026-11-24T10:00:00Z"
DIGEST = "sha256:" + "ab" * 32
LOCK = (
    "# made by `runner lock torch` from: torch==2.13.0+cpu, numpy, Python 3.11, 2026-11-20\n"
    "--extra-index-url https://example.org/cpu\n"
    f"numpy==2.4.6 --hash=sha256:{'0' * 64} --hash=sha256:{'1' * 64}\n"
    f"torch==2.13.0+cpu --hash=sha512:{'2' * 128}\n"
).encode()
FACTS: dict[str, Any] = {"python": "3.11.7", "packages": {"NumPy": "2.4.6", "torch": "2.13.0+cpu", "pip": "24.0"}}


def ready(name: str = "torch", *, lock: bytes = LOCK, **facts: Any) -> Provisioned:
    return Provisioned(
        environment=name,
        framework="torch",
        handle="h",
        digest=DIGEST,
        seconds=0.0,
        cached=True,
        facts=facts,
        lock=lock,
    )


def checked(document: str) -> dict[str, dict[str, Any]]:
    """Return name -> component of a document that the official schema accepts."""
    errors = JsonStrictValidator(SchemaVersion.V1_6).validate_str(document)
    assert errors is None, errors
    return {component["name"]: component for component in json.loads(document).get("components", [])}


def test_packages_have_version_purl_and_the_hashes_of_the_lock() -> None:
    document = sbom(ready(), FACTS, AT)
    components = checked(document)
    assert sorted(components) == ["numpy", "pip", "python", "torch"]
    assert (components["numpy"]["version"], components["numpy"]["purl"]) == ("2.4.6", "pkg:pypi/numpy@2.4.6")
    (distribution,) = components["numpy"]["externalReferences"]
    assert distribution["hashes"] == [{"alg": "SHA-256", "content": digit * 64} for digit in "01"]
    assert distribution["url"] == "pkg:pypi/numpy@2.4.6"
    assert components["torch"]["purl"] == "pkg:pypi/torch@2.13.0%2Bcpu"
    assert components["torch"]["externalReferences"][0]["hashes"][0]["alg"] == "SHA-512"
    assert components["pip"]["properties"] == [{"name": "matrix-runner:locked", "value": "no"}]
    assert components["python"] == {
        "type": "platform",
        "bom-ref": "pkg:generic/python@3.11.7",
        "name": "python",
        "version": "3.11.7",
        "purl": "pkg:generic/python@3.11.7",
    }
    dependencies = {each["ref"]: each.get("dependsOn") for each in json.loads(document)["dependencies"]}
    assert set(dependencies["environment:torch"]) == {each["bom-ref"] for each in components.values()}


def test_another_version_than_the_locked_one_has_no_hashes() -> None:
    components = checked(sbom(ready(), {"packages": {"numpy": "2.4.5"}}, AT))
    assert components["numpy"]["properties"] == [{"name": "matrix-runner:locked", "value": "no"}]
    assert "externalReferences" not in components["numpy"]


def test_an_image_has_its_digest_where_it_is_pinned() -> None:
    pinned = ready(lock=b"", image="localhost:5000/pytorch/pytorch:0.4", base="", pin=DIGEST)
    image = checked(sbom(pinned, FACTS, AT))["localhost:5000/pytorch/pytorch:0.4"]
    assert (image["type"], image["version"]) == ("container", DIGEST)
    assert image["purl"] == (f"pkg:oci/pytorch@sha256:{'ab' * 32}?repository_url=localhost:5000/pytorch/pytorch")
    unpinned = checked(sbom(ready(base="python:3.11", image="matrix-runner/torch:1", pin="unpinned"), FACTS, AT))
    assert "purl" not in unpinned["python:3.11"]
    assert unpinned["python:3.11"]["properties"] == [{"name": "matrix-runner:pin", "value": "unpinned"}]


@pytest.mark.parametrize(
    "facts",
    [
        *({}, {"packages": None}, {"packages": "x"}, {"packages": [1]}, {"python": 3}, {"python": "\x1b[2J"}),
        *(
            {"packages": {"a\nb": "1", "c": 2, "d": "1\x00", "-e": "1", "": "", "ok": "1"}},
            {"packages": {"x" * 300: "1"}},
        ),
    ],
)
def test_what_a_hostile_environment_reports_stays_valid(facts: dict[str, Any]) -> None:
    names = set(checked(sbom(ready(lock=b""), facts, AT)))
    assert names <= {"ok"}


def test_without_a_report_the_packages_are_those_of_the_lock() -> None:
    assert list(checked(sbom(ready(), {}, AT))) == ["numpy", "torch"]


@pytest.mark.parametrize("path", sorted(LOCKS.glob("*.txt")), ids=lambda path: path.stem)
def test_each_shipped_lock_makes_a_valid_document(path: Path) -> None:
    content, lock = read_lock(path)
    packages = {package.name: package.version for package in lock.packages}
    components = checked(sbom(ready(lock=content), {"packages": packages}, AT))
    assert len(components) == len(packages)
    assert all(component["externalReferences"][0]["hashes"] for component in components.values())


def test_the_document_is_written_into_the_run(tmp_path: Path) -> None:
    write_sbom(tmp_path, ready("torch-2.x"), FACTS, AT)
    content = (tmp_path / "sbom" / "torch-2.x.cdx.json").read_text()
    assert content == sbom(ready("torch-2.x"), FACTS, AT) + "\n"
    document = json.loads(content)
    assert document["metadata"]["component"]["name"] == "torch-2.x"
    assert document["serialNumber"] != json.loads(sbom(ready("torch-1.0"), FACTS, AT))["serialNumber"]
