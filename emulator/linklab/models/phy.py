"""Computes Wi-Fi's PHY rate from the signal strength. Pure.

A PHY rate is data subcarriers x coded bits each x code rate / symbol time (IEEE 802.11
17.3.2.2 for 802.11a/g, 19.5 for n, 21.5 for ac), with the long guard interval, times the number of
streams. The signal-to-noise ratio decides which modulation works. The thresholds are assumption 2.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Literal

from linklab.core.bit_exact_math import exp2

Standard = Literal["g", "n", "ac"]

WIDTHS_MHZ: dict[Standard, tuple[int, ...]] = {"g": (20,), "n": (20, 40), "ac": (20, 40, 80)}
"""The supported channel widths of each standard."""

MAX_STREAMS: dict[Standard, int] = {"g": 1, "n": 4, "ac": 8}

NOISE_DBM = -94.0
"""Noise in 20 MHz: -174 dBm/Hz, 73 dB for the width, 7 dB for the receiver. Doubling the width adds
3 dB, which the thresholds include."""

_SYMBOL_S = 4e-6
_SUBCARRIERS = {20: 52, 40: 108, 80: 234}
_SUBCARRIERS_G = 48


@dataclass(frozen=True, slots=True)
class _Coding:
    """A modulation and coding scheme: coded bits per subcarrier, code rate, least SNR in 20 MHz."""

    bits: int
    code: float
    snr_db: float


_MCS = (
    _Coding(1, 1 / 2, 2),
    _Coding(2, 1 / 2, 5),
    _Coding(2, 3 / 4, 9),
    _Coding(4, 1 / 2, 11),
    _Coding(4, 3 / 4, 15),
    _Coding(6, 2 / 3, 18),
    _Coding(6, 3 / 4, 20),
    _Coding(6, 5 / 6, 25),
    _Coding(8, 3 / 4, 29),
    _Coding(8, 5 / 6, 31),
)
"""MCS 0 to 9; 802.11n ends at 7."""

_MCS_G = (
    _Coding(1, 1 / 2, 2),
    _Coding(1, 3 / 4, 3),
    _Coding(2, 1 / 2, 5),
    _Coding(2, 3 / 4, 9),
    _Coding(4, 1 / 2, 11),
    _Coding(4, 3 / 4, 15),
    _Coding(6, 2 / 3, 18),
    _Coding(6, 3 / 4, 20),
)
"""6 to 54 Mbit/s. 9 Mbit/s, which n dropped, is 1 dB above 6 (IEEE 802.11 table 17-18)."""

_LAST_MCS_N = 7

_EXCLUDED = frozenset(
    [(20, 9, streams) for streams in (1, 2, 4, 5, 7, 8)] + [(80, 6, 3), (80, 6, 7), (80, 9, 6)]
)
"""(width, MCS, streams) that 802.11ac lacks, because bits per symbol would not be whole (21.5)."""


def snr_db(signal_dbm: float) -> float:
    """Returns the signal-to-noise ratio for the noise of 20 MHz, to which all thresholds refer."""
    return signal_dbm - NOISE_DBM


def lowest_snr_db(width_mhz: int) -> float:
    """Returns the least ratio at which the slowest rate of a channel of this width works."""
    return _MCS[0].snr_db + wider_db(width_mhz)


def phy_rate_bps(standard: Standard, width_mhz: int, streams: int, snr_db: float) -> float:
    """Returns the fastest rate that works at `snr_db` (for the noise of 20 MHz), 0 if none does.

    Raises ValueError for a width (20; n: 40; ac: 40, 80) or a number of streams (g: 1; n: up to
    4; ac: up to 8) that the standard does not have.
    """
    rates = phy_rates(standard, width_mhz, streams)
    return max((rate for least_db, rate in rates if snr_db >= least_db), default=0.0)


@functools.cache
def phy_rates(standard: Standard, width_mhz: int, streams: int) -> tuple[tuple[float, float], ...]:
    """Returns a channel's rates, slowest first: (least SNR in dB, bit/s). Raises as `phy_rate_bps`."""
    if width_mhz not in WIDTHS_MHZ[standard]:
        widths = ", ".join(str(width) for width in WIDTHS_MHZ[standard])
        raise ValueError(f"802.11{standard} with {width_mhz} MHz; allowed: {widths} MHz")
    if not 1 <= streams <= MAX_STREAMS[standard]:
        raise ValueError(
            f"802.11{standard} with {streams} streams; allowed: 1 to {MAX_STREAMS[standard]}"
        )
    subcarriers = _SUBCARRIERS_G if standard == "g" else _SUBCARRIERS[width_mhz]
    more_db = wider_db(width_mhz)
    return tuple(
        (mcs.snr_db + more_db, subcarriers * mcs.bits * mcs.code / _SYMBOL_S * streams)
        for mcs in _codings(standard, width_mhz, streams)
    )


def _codings(standard: Standard, width_mhz: int, streams: int) -> tuple[_Coding, ...]:
    if standard == "g":
        return _MCS_G
    if standard == "n":
        return _MCS[: _LAST_MCS_N + 1]
    return tuple(
        mcs for index, mcs in enumerate(_MCS) if (width_mhz, index, streams) not in _EXCLUDED
    )


def wider_db(width_mhz: int) -> float:
    """Returns the additional noise compared with 20 MHz: 3 dB per doubling of the width."""
    return 3.0 * ((width_mhz // 20).bit_length() - 1)


def delivered_share(snr_db: float, width_mhz: int) -> float:
    """Returns the share of the slowest rate that retries leave: halved per dB below its threshold.

    So a link fades over the last decibels before it is lost. In 20 MHz it carries hundreds of kbit/s
    during a walk of 5 to 10 s, as GreenBag saw at the edge. The slope is an assumption. From the
    threshold on the share is 1.
    """
    return exp2(min(0.0, snr_db - lowest_snr_db(width_mhz)))
