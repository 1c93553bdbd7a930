"""Tests the arithmetic of the kernel's coupled congestion controls against the published formulas,
and that of re-sending and penalising.

The host's C compiler builds the same files that the kernel is built from.
"""

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklab.places.guest import kernel

FOLDER = kernel.GUEST.sources / "net/mptcp"
RULES, RESEND_RULES = FOLDER / "coupled_rules.h", FOLDER / "resend_rules.h"
SHIM = f"""
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long s64;
static u64 mul_u64_u64_div_u64(u64 a, u64 b, u64 c) {{
    unsigned __int128 made = (unsigned __int128)a * b / c;
    if (made >> 64) __builtin_trap();
    return made;
}}
#include "{RULES}"
#include "{RESEND_RULES}"
#define EXPORT(rule) s64 of_##rule(const struct coupled_path *paths, int count, int own, u64 bytes) \\
    {{ return rule(paths, count, own, bytes); }}
EXPORT(lia_increase)
EXPORT(olia_increase)
EXPORT(balia_increase)
u32 of_balia_decrease(const struct coupled_path *paths, int count, int own)
    {{ return balia_decrease(paths, count, own); }}
int of_resend_is_worth_it(const struct resend_path *fast, const struct resend_path *slow)
    {{ return resend_is_worth_it(fast, slow); }}
int of_resend_penalises(const struct resend_path *fast, const struct resend_path *slow, u64 elapsed)
    {{ return resend_penalises(fast, slow, elapsed); }}
void of_resend_penalise(struct resend_path *slow) {{ resend_penalise(slow); }}
"""

SEGMENT = 65536
"""A segment in the unit of the rules."""

MSS = 1428


class Subflow(NamedTuple):
    """A subflow: its window and its longer run between losses in bytes, its round trip in µs."""

    window: int
    rtt: int
    run: int = 0
    mss: int = MSS

    @property
    def rate(self) -> Fraction:
        return Fraction(self.window, self.rtt)


class CPath(ctypes.Structure):
    _fields_ = (
        ("window", ctypes.c_uint64),
        ("run", ctypes.c_uint64),
        ("rtt", ctypes.c_uint32),
        ("mss", ctypes.c_uint32),
    )


class ResendPath(ctypes.Structure):
    """struct resend_path: the round trip in µs, window and threshold in segments."""

    _fields_ = (
        ("rtt", ctypes.c_uint32),
        ("window", ctypes.c_uint32),
        ("threshold", ctypes.c_uint32),
    )

    rtt: int
    window: int
    threshold: int


class Rules:
    """The functions of coupled_rules.h and resend_rules.h."""

    def __init__(self, library: Any) -> None:
        self._library = library
        for name in ("lia", "olia", "balia"):
            getattr(library, f"of_{name}_increase").restype = ctypes.c_int64

    def increase(self, name: str, paths: Sequence[Subflow], own: int, acked: int) -> Fraction:
        """Returns the change of path `own` for bytes acknowledged, in segments."""
        function = getattr(self._library, f"of_{name}_increase")
        made = function(_array(paths), len(paths), own, ctypes.c_uint64(acked))
        return Fraction(made, SEGMENT)

    def decrease(self, paths: Sequence[Subflow], own: int) -> Fraction:
        """Returns the part of its window that path `own` loses with BALIA."""
        return Fraction(self._library.of_balia_decrease(_array(paths), len(paths), own), 1024)

    def resends(self, fast: ResendPath, slow: ResendPath) -> bool:
        """Tells whether `fast` sends again what `slow` holds."""
        return bool(self._library.of_resend_is_worth_it(ctypes.byref(fast), ctypes.byref(slow)))

    def penalises(self, fast: ResendPath, slow: ResendPath, elapsed: int) -> bool:
        """Tells whether `fast` penalises `slow`, so many µs after it last did."""
        function, since = self._library.of_resend_penalises, ctypes.c_uint64(elapsed)
        return bool(function(ctypes.byref(fast), ctypes.byref(slow), since))

    def penalised(self, slow: ResendPath) -> tuple[int, int]:
        """Returns the window and the threshold afterwards."""
        after = ResendPath(slow.rtt, slow.window, slow.threshold)
        self._library.of_resend_penalise(ctypes.byref(after))
        return after.window, after.threshold


def _array(paths: Sequence[Subflow]) -> Any:
    return (CPath * len(paths))(*(CPath(one.window, one.run, one.rtt, one.mss) for one in paths))


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Rules:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler (Debian: gcc)")
    directory = tmp_path_factory.mktemp("rules")
    source, library = directory / "rules.c", directory / "rules.so"
    source.write_text(SHIM)
    subprocess.run(
        [compiler, "-Wall", "-Werror", "-shared", "-fPIC", "-o", library, source], check=True
    )
    return Rules(ctypes.CDLL(str(library)))


def lia(paths: Sequence[Subflow], own: int, acked: int) -> Fraction:
    """RFC 6356, 3, in segments."""
    total = sum(one.window for one in paths)
    best = max(Fraction(one.window, one.rtt**2) for one in paths)
    alpha = total * best / sum(one.rate for one in paths) ** 2
    mss, window = paths[own].mss, paths[own].window
    return min(alpha * acked * mss / total, Fraction(acked * mss, window)) / mss


def first_term(paths: Sequence[Subflow], own: int) -> Fraction:
    """Per segment: (w_r / rtt_r²) / (Σ w_p / rtt_p)², with windows in segments."""
    mine = paths[own]
    rates = sum(one.rate / mine.mss for one in paths)
    return Fraction(mine.window, mine.mss) / mine.rtt**2 / rates**2


def olia(paths: Sequence[Subflow], own: int, acked: int) -> Fraction:
    """Khalili et al. 2012, equation 8 and the definition of alpha below it, in segments."""
    quality = [Fraction(one.run, one.rtt**2) for one in paths]
    best = {i for i, one in enumerate(quality) if one == max(quality)}
    largest = {i for i, one in enumerate(paths) if one.window == max(p.window for p in paths)}
    alpha = Fraction(0)
    if best - largest:
        if own in best - largest:
            alpha = Fraction(1, len(paths) * len(best - largest))
        elif own in largest:
            alpha = -Fraction(1, len(paths) * len(largest))
    mine = paths[own]
    per_segment = first_term(paths, own) + alpha / Fraction(mine.window, mine.mss)
    return per_segment * Fraction(acked, mine.mss)


def balia_alpha(paths: Sequence[Subflow], own: int) -> Fraction:
    return max(one.rate for one in paths) / paths[own].rate


def balia(paths: Sequence[Subflow], own: int, acked: int) -> Fraction:
    """Peng et al. 2016, section V, in segments."""
    alpha = balia_alpha(paths, own)
    per_segment = first_term(paths, own) * (1 + alpha) / 2 * (4 + alpha) / 5
    return per_segment * Fraction(acked, paths[own].mss)


FORMULAS = {"lia": lia, "olia": olia, "balia": balia}

SUBFLOWS = st.lists(
    st.builds(
        Subflow,
        window=st.integers(1, 5000).map(lambda segments: segments * MSS),
        rtt=st.integers(100, 3_000_000),
        run=st.integers(0, 10**9),
        mss=st.just(MSS),
    ),
    min_size=1,
    max_size=8,
)


@given(paths=SUBFLOWS, own=st.integers(0, 7), acked=st.integers(1, 64))
@pytest.mark.parametrize("name", FORMULAS)
def test_a_window_changes_by_the_published_formula(
    rules: Rules, name: str, paths: list[Subflow], own: int, acked: int
) -> None:
    """Within a rounding error of 0.5 %, or of 4/65536 segment."""
    own %= len(paths)
    published = FORMULAS[name](paths, own, acked * MSS)
    made = rules.increase(name, paths, own, acked * MSS)
    if name == "balia" and balia_alpha(paths, own) > 1000:
        assert made >= 0  # Alpha is cut off there.
    else:
        assert abs(made - published) <= max(Fraction(4, SEGMENT), abs(published) / 200)


def test_balia_halves_the_best_window_and_takes_up_to_three_quarters_of_others(
    rules: Rules,
) -> None:
    paths = [Subflow(60 * MSS, 50_000), Subflow(45 * MSS, 50_000), Subflow(10 * MSS, 50_000)]
    shares = [float(rules.decrease(paths, own)) for own in range(3)]
    assert shares == pytest.approx([1 / 2, 2 / 3, 3 / 4], abs=2e-3)


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("own", [0, 1])
def test_extreme_paths_do_not_overflow(rules: Rules, name: str, own: int) -> None:
    """The kernel's division traps if a result has more than 64 bits."""
    largest = 2**30 - 1
    paths = [Subflow(largest, 1, run=2**60), Subflow(1, 2**29, run=1)]
    assert rules.increase(name, paths, own, 2**20 * MSS) >= 0


FIRST_THRESHOLD = 2**31 - 1
"""The threshold of a subflow that has lost nothing."""

RESEND_PATHS = st.builds(
    ResendPath,
    st.integers(1, 2**32 - 1),
    st.integers(1, 2**31),
    st.integers(2, FIRST_THRESHOLD),
)


@given(fast=RESEND_PATHS, slow=RESEND_PATHS)
def test_a_much_slower_subflow_or_a_small_window_has_its_bytes_sent_again(
    rules: Rules, fast: ResendPath, slow: ResendPath
) -> None:
    """The kernel v0.89. Four times the longest round trip is more than 32 bits."""
    much_slower = Fraction(slow.rtt, fast.rtt) > 4
    assert rules.resends(fast, slow) == (much_slower or slow.window < 5)


@given(slow=RESEND_PATHS)
def test_a_penalty_halves_the_window(rules: Rules, slow: ResendPath) -> None:
    """Raiciu et al. 2012, 4.2. The threshold of slow start stays (Paasch et al. 2013)."""
    window, threshold = rules.penalised(slow)
    assert window == max(slow.window // 2, 1)
    in_slow_start = slow.window < slow.threshold
    assert threshold == (slow.threshold if in_slow_start else max(slow.threshold // 2, 2))


@given(fast=RESEND_PATHS, slow=RESEND_PATHS, elapsed=st.integers(0, 2**40))
def test_only_a_slower_subflow_is_penalised_once_per_round_trip(
    rules: Rules, fast: ResendPath, slow: ResendPath, elapsed: int
) -> None:
    expected = slow.rtt > fast.rtt and elapsed >= fast.rtt
    assert rules.penalises(fast, slow, elapsed) == expected


def test_each_source_goes_to_a_folder_of_the_kernel() -> None:
    sources = kernel.GUEST.sources
    folders = {path.parent for path in sources.rglob("*.[ch]")}
    assert folders == {sources / "net" / "mptcp", sources / "net" / "sched"}
