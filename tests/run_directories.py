"""Makes run directories without a lab, for tests of code that reads them."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_SCENARIO = """name: {scenario}
payload: {{size: {size_bytes} B}}
links:
  wifi: {{down: 60 Mbit/s, up: 20 Mbit/s, rtt: 10 ms}}
  lte: {{down: 40 Mbit/s, up: 10 Mbit/s, rtt: 40 ms}}
"""


def finished_run(
    path: Path,
    algorithm: str,
    *,
    download_s: float,
    seed: int = 1,
    scenario: str = "same",
    size_bytes: int = 10_000_000,
    clock: str = "virtual",
    revision: str = "r1",
    events: Sequence[dict[str, Any]] = (),
    workload: str = "",
) -> Path:
    """Makes a successful run of multilink with events of its links: a download, or a scenario's
    `workload`."""
    path.mkdir(parents=True)
    text = _SCENARIO.format(scenario=scenario, size_bytes=size_bytes)
    (path / "scenario.yaml").write_text(text + workload)
    _write(
        path / "run.json",
        {
            "format": 1,
            "scenario": scenario,
            "contestant": algorithm,
            "command": None,
            "seed": seed,
            "place": "guest",
            "clock": clock,
            "reason": path.name,
            "shift_s": 0.0,
            "started_at": "2026-11-21T06:19:34+00:00",
            **dict.fromkeys(
                ("payload", "payload_sha256", "multilink", "certificate_authority"), ""
            ),
            "certificate": "",
            "key": "",
            "versions": {"revision": revision},
        },
    )
    _write(
        path / "client.json",
        {
            "algorithm": algorithm,
            "outcome": "complete",
            "size_bytes": size_bytes,
            "download_ns": round(download_s * 1e9),
            "links": {
                "wifi": {"bytes": size_bytes * 6 // 10, "finish_ns": round(download_s * 9e8)},
                "lte": {"bytes": size_bytes * 4 // 10, "finish_ns": round(download_s * 1e9)},
            },
        },
    )
    outcome = {"exit_code": 0, "elapsed_ns": 1, "received_bytes": {}, "output_bytes": 1}
    outcome["uploaded_sha256"] = ""
    _write(path / "outcome.json", outcome)
    (path / "events.jsonl").write_text("".join(json.dumps(one) + "\n" for one in events))
    return path


def changed_by_hand(run_dir: Path, copy: Path) -> Path:
    """Copies a run as if a user had changed Wi-Fi: 10 Mbit/s from 1 s on, and no carrier for 3 s
    from 2 s on."""
    shutil.copytree(run_dir, copy)
    manifest = json.loads((copy / "run.json").read_text())
    _write(copy / "run.json", {**manifest, "reason": copy.name})
    with (copy / "events.jsonl").open("a") as file:
        for t_s, kind, words in (
            (1.0, "live", "down 10 Mbit/s"),
            (2.0, "live", "carrier down for 3 s"),
            (5.0, "live-end", "carrier down for 3 s"),
        ):
            record = {"t_s": t_s, "link": "wifi", "kind": kind, "detail": words}
            file.write(json.dumps(record) + "\n")
    return copy


def _write(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content))
