"""Shows a link's signal strength as a phone does: in a file like /proc/net/wireless.

The lab's kernel has no radio. The model's value is written to a file of the client
(`LINKLAB_WIRELESS`), in the form of Linux' wireless extensions.
"""

from __future__ import annotations

from pathlib import Path

_HEADER = (
    "Inter-| sta-|   Quality        |   Discarded packets               | Missed | WE\n"
    " face | tus | link level noise |  nwid  crypt   frag  retry   misc | beacon | 22\n"
)

_BEST_DBM, _WORST_DBM = -40, -110
"""The ends of mac80211's scale of 70 link qualities (Linux net/mac80211, net/wireless)."""


def text(signals_dbm: dict[str, float]) -> str:
    """Returns the file's content for the devices' signal strengths."""
    lines = []
    for device, signal_dbm in signals_dbm.items():
        quality = round(min(max(signal_dbm, _WORST_DBM), _BEST_DBM)) - _WORST_DBM
        lines.append(
            f"{device:>6}: 0000  {quality:3}. {round(signal_dbm):4}.  -256  "
            "      0      0      0      0      0        0\n"
        )
    return _HEADER + "".join(lines)


class SignalFile:
    """Replaces the file as a whole when a signal changes.

    It does not use `whole_file`, because it writes while the emulator's clock runs and must use few
    system calls. No other process writes the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._signals_dbm: dict[str, float] = {}

    def show(self, device: str, signal_dbm: float | None) -> None:
        """Shows a device's signal. None removes the device, as without a network."""
        if self._signals_dbm.get(device) == signal_dbm:
            return
        if signal_dbm is None:
            del self._signals_dbm[device]
        else:
            self._signals_dbm[device] = signal_dbm
        new = self._path.with_suffix(".new")
        new.write_text(text(self._signals_dbm))
        new.replace(self._path)
