import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from linklab.core.records import RecordError
from linklab.runs import job
from linklab.runs.job import Job

JOB = Job(
    scenario="small",
    client="alg3",
    command=None,
    seed=2**63 - 1,
    place="guest",
    clock="virtual",
    reason="figures repeat exactly",
    shift_s=1e-6,
    started_at="2026-01-01T00:00:00+00:00",
    payload="/cache/payloads/payload-1-1.bin",
    payload_sha256="00",
    multilink="/build/multilink",
    certificate_authority="/cache/authority/ca.pem",
    certificate="/cache/authority/server.pem",
    key="/cache/authority/server.key",
    versions={"linklab": "1"},
)


def edited(run_dir: Path, **changes: Any) -> None:
    job.write(JOB, run_dir)
    file = run_dir / "run.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    for one in (JOB, msgspec.structs.replace(JOB, client=None, command=["curl", "{url}", ""])):
        job.write(one, tmp_path)
        assert job.read(tmp_path) == one
    assert json.loads((tmp_path / "run.json").read_text())["format"] == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"colour": "red"}, "unknown field `colour`"),
        ({"seed": "1"}, r"Expected `int`, got `str`.*\$\.seed"),
        ({"format": 2}, r"Invalid enum value 2.*\$\.format"),
        ({"versions": None}, r"\$\.versions"),
    ],
)
def test_another_manifest_is_refused(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    edited(tmp_path, **changes)
    with pytest.raises(RecordError, match=words):
        job.read(tmp_path)


def test_a_manifest_that_is_no_text_is_refused(tmp_path: Path) -> None:
    edited(tmp_path, scenario="hs-s7")
    file = tmp_path / "run.json"
    file.write_bytes(file.read_bytes().replace(b"hs-s7", b"hs-s\xff"))
    with pytest.raises(RecordError, match=r"run\.json: cannot be read: 'utf-8' codec"):
        job.read(tmp_path)


def test_a_command_is_shown_without_users_and_passwords() -> None:
    given = ["publish", "--grafana=HTTPS://me:s@cret@g:3000/a@b", "http://token@g", "http://g/x@y"]
    assert job.without_credentials(given) == [
        "publish",
        "--grafana=HTTPS://g:3000/a@b",
        "http://g",
        "http://g/x@y",
    ]
