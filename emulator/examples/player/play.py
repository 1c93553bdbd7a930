#!/usr/bin/python3
"""Plays a film of HLS with GStreamer's playbin3, without a screen, and prints what a viewer had.

usage: play.py URL

It prints one JSON object: seconds until the film began, each stall with its start and length in
seconds, and each bitrate from the time on at which the player chooses it. All times are in the
clock of the lab. With `http_proxy` set the player uses that proxy.
"""

import json
import sys
import time
from typing import Any

import gi

gi.require_version("Gst", "1.0")
from gi.repository import GLib, Gst  # noqa: E402

STALL_S = 0.5
"""A picture that comes later than this after the one before ends a stall."""


class Player:
    """A playbin3 that pauses while its buffer fills, as GStreamer's tutorial 12 asks players to do."""

    def __init__(self, url: str) -> None:
        self._begun = time.monotonic()
        self._loop = GLib.MainLoop()
        self._bin = Gst.ElementFactory.make("playbin3")
        self._bin.set_property("uri", url)
        sink = Gst.ElementFactory.make("fakevideosink")
        pictures = sink.iterate_sinks().next()[1]
        pictures.set_property("signal-handoffs", True)
        pictures.connect("handoff", self._shown)
        self._bin.set_property("video-sink", sink)
        self._bin.set_property("audio-sink", Gst.ElementFactory.make("fakeaudiosink"))
        self._last_s: float | None = None
        self.start_s: float | None = None
        self.stalls: list[dict[str, float]] = []
        self.rates: list[dict[str, float]] = []
        self.end_s = 0.0
        self.error = ""

    def play(self) -> None:
        """Plays the film to its end, or to the first error."""
        bus = self._bin.get_bus()
        bus.add_signal_watch()
        bus.connect("message", self._heard)
        self._bin.set_state(Gst.State.PLAYING)
        self._loop.run()
        self.end_s = self._now()
        self._bin.set_state(Gst.State.NULL)

    def _now(self) -> float:
        return round(time.monotonic() - self._begun, 3)

    def _shown(self, *_: object) -> None:
        now, last = self._now(), self._last_s
        if last is None:
            self.start_s = now
        elif now - last > STALL_S:
            self.stalls.append({"at_s": last, "length_s": round(now - last, 3)})
        self._last_s = now

    def _heard(self, _: object, message: Any) -> None:
        match message.type:
            case Gst.MessageType.ERROR:
                self.error = str(message.parse_error()[0])
                self._loop.quit()
            case Gst.MessageType.EOS:
                self._loop.quit()
            case Gst.MessageType.BUFFERING:
                is_full = message.parse_buffering() == 100
                self._bin.set_state(Gst.State.PLAYING if is_full else Gst.State.PAUSED)
            case Gst.MessageType.ELEMENT:
                said = message.get_structure()
                found, rate_bps = said.get_int("bitrate")
                if found and said.get_name() == "adaptive-streaming-statistics":
                    self.rates.append({"at_s": self._now(), "rate_bps": rate_bps})


def main(url: str) -> int:
    """Plays the film at a URL and prints what a viewer had. Returns 1 if the player failed."""
    Gst.init(None)
    player = Player(url)
    player.play()
    names = ("start_s", "stalls", "rates", "end_s", "error")
    print(json.dumps({name: getattr(player, name) for name in names}, indent=1))
    return int(player.error != "")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: play.py URL")
    sys.exit(main(sys.argv[1]))
