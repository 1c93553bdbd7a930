"""Tests that foreign things that linklab builds on are named by hash, not by a tag that can move."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import REPOSITORY

BY_TAG: dict[str, str] = {}
"""Images that stay named by tag, and why."""

_DIGEST = re.compile(r"(?P<image>[^@:\s]+)(?::(?P<tag>[^@\s]+))?@sha256:(?P<digest>[0-9a-f]{64})")
_COMMIT = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}")
WORKFLOWS = sorted(
    [*(REPOSITORY / ".github").rglob("*.yml"), *(REPOSITORY / ".github").rglob("*.yaml")]
)
DEVCONTAINER = REPOSITORY / ".devcontainer" / "devcontainer.json"
DOCKERFILES = sorted(REPOSITORY.glob("*/Dockerfile"))


def values(node: Any, *keys: str) -> Iterator[Any]:
    """Yields the values of these keys, anywhere in a document."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in keys:
                yield value
            yield from values(value, *keys)
    elif isinstance(node, list):
        for one in node:
            yield from values(one, *keys)


def pinned(image: str) -> str:
    """Returns the image that is used if no variable names another."""
    return re.sub(r"^\$\{\w+:-(.*)\}$", r"\1", image)


def images() -> Iterator[tuple[str, str]]:
    """Yields where foreign images are named, and how."""
    for path in WORKFLOWS:
        found = values(yaml.safe_load(path.read_text()), "container", "image")
        yield from ((path.name, one) for one in found if isinstance(one, str))
    for path in DOCKERFILES:
        text = path.read_text()
        stages = set(re.findall(r" AS (\w+)$", text, re.MULTILINE))
        for one in re.findall(r"^FROM (\S+)", text, re.MULTILINE):
            image = pinned(one)
            if image != "scratch" and image not in stages:
                yield f"{path.parent.name}/{path.name}", image
    container = json.loads(DEVCONTAINER.read_text())
    yield DEVCONTAINER.name, container["image"]
    services = yaml.safe_load((REPOSITORY / "compose.yaml").read_text())["services"]
    built = {service.get("image") for service in services.values() if "build" in service}
    for service in services.values():
        if "build" not in service and service["image"] not in built:
            yield "compose.yaml", pinned(service["image"])


def test_images_are_named_by_digest() -> None:
    by_tag = {image for _, image in images() if not _DIGEST.fullmatch(image)}
    assert by_tag == set(BY_TAG), "an image goes by a tag, or no longer does"


def test_an_image_is_the_same_everywhere() -> None:
    digests: dict[tuple[str, str | None], set[str]] = defaultdict(set)
    for _, image in images():
        match = _DIGEST.fullmatch(image)
        if match:
            digests[match["image"], match["tag"]].add(match["digest"])
    assert all(len(found) == 1 for found in digests.values()), digests


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_actions_are_named_by_commit_and_say_their_version(path: Path) -> None:
    text = path.read_text()
    for used in values(yaml.safe_load(text), "uses"):
        if used.startswith("./"):
            continue
        assert _COMMIT.fullmatch(used), used
        assert re.search(rf"{re.escape(used)}  # v\d+\.\d+\.\d+$", text, re.MULTILINE), used


def test_a_release_takes_nothing_from_a_cache() -> None:
    release = yaml.safe_load((REPOSITORY / ".github/workflows/release.yml").read_text())
    used = [one.split("@")[0] for one in values(release, "uses")]
    assert set(used) == {
        "actions/checkout",
        "actions/upload-artifact",
        "actions/download-artifact",
        "actions/attest",
        "pypa/gh-action-pypi-publish",
    }


def steps(node: Any) -> Iterator[dict[str, Any]]:
    """Yields the steps of a workflow or action, anywhere in it."""
    for found in values(node, "steps"):
        yield from found


def examples() -> Iterator[tuple[str, Any]]:
    """Yields where workflows are shown to be copied, and each."""
    for path in [*REPOSITORY.glob("*.md"), *(REPOSITORY / "emulator").rglob("*.md")]:
        for block in re.findall(r"^```ya?ml\n(.*?)^```", path.read_text(), re.M | re.S):
            if "jobs:" in block:
                yield path.name, yaml.safe_load(block)


def test_no_checkout_keeps_a_token() -> None:
    """Programs that a suite names, and build scripts of a pull request, could read it."""
    shown = dict(examples())
    assert set(shown) == {"run-in-ci.md"}
    made = [(path.name, yaml.safe_load(path.read_text())) for path in WORKFLOWS]
    checkouts = [
        (name, step)
        for name, node in [*made, *shown.items()]
        for step in steps(node)
        if step.get("uses", "").startswith("actions/checkout@")
    ]
    assert len(checkouts) >= 8
    for name, step in checkouts:
        assert step.get("with", {}).get("persist-credentials") is False, name


def test_a_release_is_attested_before_it_is_published() -> None:
    """Its checksums too. Only this job may sign, and only the index's job else has an identity."""
    release = yaml.safe_load((REPOSITORY / ".github/workflows/release.yml").read_text())
    job = release["jobs"]["publish"]
    order = [step.get("run", step.get("uses", "")) for step in job["steps"]]
    places = [
        next(number for number, one in enumerate(order) if word in one)
        for word in ("SHA256SUMS", "actions/attest@", "gh release create")
    ]
    assert places == sorted(places)
    assert job["steps"][places[1]]["with"]["subject-path"] == "release/*"
    identified = {
        name for name, one in release["jobs"].items() if "id-token" in one.get("permissions", {})
    }
    assert identified == {"publish", "index"}


def test_go_of_the_image_is_go_of_the_client() -> None:
    """Otherwise an image older than go.mod requires would download another Go."""
    wanted = re.search(r"^go (\S+)$", (REPOSITORY / "client/go.mod").read_text(), re.MULTILINE)
    assert wanted is not None
    for _, image in images():
        if image.startswith("golang:"):
            assert image.startswith(f"golang:{wanted[1]}-bookworm@")
