"""Translates a scenario's workload into flags of `multilink workload`. Pure."""

from __future__ import annotations

from typing import Final

from linklab.runs import page_objects
from linklab.scenario.workload import MediaPlayer, Paced, Page, Rounds, Workload

APPLICATIONS: Final = ("player", "page", "rounds", "paced")
"""The workloads that `multilink workload` can do."""


def flags(workload: Workload, size_bytes: int) -> list[str]:
    """Returns the flags for a workload of `size_bytes`. Raises ValueError if the workload is none
    of `APPLICATIONS`."""
    match getattr(workload, workload.name, None):
        case MediaPlayer() as player:
            return _player(player, size_bytes)
        case Page() as page:
            sizes = page_objects.sizes_bytes(page, size_bytes)
            objects = ",".join(map(str, sizes))
            return ["--objects", objects, "--connections", str(page.connections)]
        case Rounds() as rounds:
            return [
                *("--request", f"{rounds.request_bytes}B", "--answer", f"{rounds.answer_bytes}B"),
                *("--think", f"{rounds.think_s}s"),
            ]
        case Paced() as paced:
            return ["--rate", f"{paced.rate_bps}bit/s", "--every", f"{paced.every_s}s"]
    raise ValueError(f"{workload.name} is no workload of a program in front of a download")


def _player(player: MediaPlayer, size_bytes: int) -> list[str]:
    words = [
        *("--rate", f"{player.mean_rate_bps(size_bytes):g}bit/s"),
        *("--start", f"{player.starts_with_bytes}B"),
        *("--low", f"{player.low_bytes}B", "--high", f"{player.high_bytes}B"),
    ]
    if player.segment_bytes is not None:
        words += ["--segment", f"{player.segment_bytes}B"]
    if player.segment_s is not None:
        words += ["--segment-duration", f"{player.segment_s}s"]
    if player.variation:
        words += ["--variation", str(player.variation), "--seed", str(player.seed)]
    return words
