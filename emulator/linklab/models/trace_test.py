import math
import random
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from linklab.core.limits import MAX_RATE_BPS
from linklab.core.link_state import LinkState
from linklab.models.layer import NO_LOAD
from linklab.models.trace import ENDS, TracePlayback, TraceSettings
from linklab.traces import library, plain
from linklab.traces.trace import NS_PER_S, TraceSample

SECOND = NS_PER_S
BASE = LinkState(
    up=True,
    down_rate_bps=50_000_000,
    up_rate_bps=10_000_000,
    delay_s=0.025,
    jitter_s=0.004,
    loss_ratio=0.001,
)

samples = st.builds(
    TraceSample,
    length_ns=st.integers(1, 3000).map(lambda ms: ms * 1_000_000),
    down_bps=st.integers(0, 3 * 10**6) | st.integers(0, 2000),
    up_bps=st.none() | st.integers(0, 10**6),
    rtt_s=st.none() | st.floats(0, 1),
    loss_ratio=st.none() | st.floats(0, 1),
)
traces = st.lists(samples, min_size=1, max_size=12)
delays = st.lists(
    st.builds(
        TraceSample,
        length_ns=st.integers(1, 3000).map(lambda ms: ms * 1_000_000),
        rtt_s=st.none() | st.floats(0, 1),
        loss_ratio=st.none() | st.floats(0, 1),
    ),
    min_size=1,
    max_size=12,
)
times_ns = st.integers(0, 100_000).map(lambda ms: ms * 1_000_000)
ends = st.sampled_from(ENDS)


def playback(trace: list[TraceSample], **settings: object) -> TracePlayback:
    return TracePlayback(trace, TraceSettings(**settings), random.Random(1))  # type: ignore[arg-type]


def at(layer: TracePlayback, t_ns: int) -> LinkState:
    return layer.apply(t_ns / SECOND, NO_LOAD, BASE)


def length_ns(trace: list[TraceSample]) -> int:
    return sum(sample.length_ns for sample in trace)


def changes(layer: TracePlayback, until_s: float) -> list[tuple[float, LinkState]]:
    """What a player sees that asks only when it has to."""
    t_s, seen = 0.0, []
    while t_s < until_s:
        seen.append((t_s, layer.apply(t_s, NO_LOAD, BASE)))
        assert layer.next_s() > t_s
        t_s = layer.next_s()
    return seen


def test_a_queue_held_below_stays_held() -> None:
    held = replace(BASE, hold_down=True, hold_up=True)
    state = playback([TraceSample(SECOND, 10**6, 10**6)]).apply(0.0, NO_LOAD, held)
    assert (state.hold_down, state.hold_up) == (True, True)


def test_a_loop_does_not_drift() -> None:
    """Seventh parts of a second have no exact float; after 100 000 laps it is exact all the same."""
    trace = [TraceSample(142_857_143, 10**6), TraceSample(142_857_143, 2 * 10**6)]
    layer = playback(trace)
    begin_ns = 100_000 * length_ns(trace)
    assert at(layer, begin_ns - 1).down_rate_bps == 2 * 10**6
    assert at(layer, begin_ns).down_rate_bps == 10**6
    assert layer.next_s() == (begin_ns + 142_857_143) / SECOND


def test_hold_stays_as_the_last_sample_is() -> None:
    layer = playback([TraceSample(SECOND, 10**6), TraceSample(SECOND, 2 * 10**6)], end="hold")
    assert [state.down_rate_bps for _, state in changes(layer, 100)] == [10**6, 2 * 10**6]
    assert layer.next_s() == math.inf
    assert at(layer, 500 * SECOND).down_rate_bps == 2 * 10**6


def test_equal_neighbours_are_one() -> None:
    layer = playback(
        [TraceSample(SECOND, 10**6), TraceSample(SECOND, 10**6), TraceSample(SECOND, 2 * 10**6)]
    )
    assert [t_s for t_s, _ in changes(layer, 6)] == [0.0, 2.0, 3.0, 5.0]
    assert changes(playback([TraceSample(SECOND, 10**6)] * 5), math.inf) == [
        (0.0, replace(BASE, down_rate_bps=10**6))
    ]


def test_a_start_is_drawn_from_the_seed() -> None:
    trace = plain.load(library.find("lte-driving"))
    drawn = TraceSettings(start_s=None)

    def first_rates(seed: int) -> list[int]:
        layer = TracePlayback(trace, drawn, random.Random(seed))
        return [state.down_rate_bps for _, state in changes(layer, 5)]

    assert first_rates(1) == first_rates(1)
    assert len({tuple(first_rates(seed)) for seed in range(10)}) == 10


def test_a_fixed_start_takes_nothing_from_the_seed() -> None:
    randomness = random.Random(1)
    TracePlayback([TraceSample(SECOND, 1)], TraceSettings(), randomness)
    assert randomness.random() == random.Random(1).random()


ONE = [TraceSample(SECOND, 1)]


@pytest.mark.parametrize(
    ("trace", "settings", "message"),
    [
        (ONE, {"start_s": 1.0}, "a start of 1.0 s is not in the trace; allowed: 0"),
        (ONE, {"start_s": -1.0}, "allowed: 0 s up to less than 1.0 s"),
        ([TraceSample(SECOND, 0)], {"down_mean_bps": 5}, "cannot be scaled to 5 bit/s"),
        (ONE, {"down_mean_bps": 11 * 10**9}, "11000000000 bit/s; allowed: up to"),
    ],
)
def test_what_cannot_be_played_is_refused(
    trace: list[TraceSample], settings: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError) as caught:
        playback(trace, **settings)
    assert message in str(caught.value)


@given(traces, ends, st.data(), times_ns)
def test_starting_later_is_the_same_as_having_waited(
    trace: list[TraceSample], end: str, data: st.DataObject, t_ns: int
) -> None:
    start_ns = data.draw(st.integers(0, length_ns(trace) // 10**6 - 1)) * 10**6
    late = playback(trace, start_s=start_ns / SECOND, end=end)
    early = playback(trace, end=end)
    assert at(late, t_ns) == at(early, t_ns + start_ns)
    assert late.next_s() == pytest.approx(early.next_s() - start_ns / SECOND, abs=1e-9)


def played(sample: TraceSample) -> LinkState:
    """The state of the link while a sample lasts."""
    down_bps = BASE.down_rate_bps if sample.down_bps is None else sample.down_bps
    up_bps = BASE.up_rate_bps if sample.up_bps is None else sample.up_bps
    delay_s = BASE.delay_s if sample.rtt_s is None else sample.rtt_s / 2
    return replace(
        BASE,
        down_rate_bps=max(down_bps, 1000),
        up_rate_bps=max(up_bps, 1000),
        hold_down=down_bps < 1000,
        hold_up=up_bps < 1000,
        delay_s=delay_s,
        jitter_s=min(BASE.jitter_s, delay_s),
        loss_ratio=BASE.loss_ratio if sample.loss_ratio is None else sample.loss_ratio,
    )


@given(traces | delays, ends, times_ns)
@example([TraceSample(SECOND, 999, 1000)], "loop", 0)
@example([TraceSample(SECOND, 1000, 0)], "loop", 0)
def test_the_state_is_the_sample_of_that_moment(
    trace: list[TraceSample], end: str, t_ns: int
) -> None:
    state = at(playback(trace, end=end), t_ns)
    total_ns = length_ns(trace)
    if t_ns >= total_ns and end == "stop":
        assert state.hold_down
        assert state.hold_up
        return
    position_ns = min(t_ns, total_ns - 1) if end == "hold" else t_ns % total_ns
    for sample in trace:
        if position_ns < sample.length_ns:
            break
        position_ns -= sample.length_ns
    assert state == played(sample)


@given(traces, ends, st.lists(times_ns, max_size=20).map(sorted))
def test_it_asks_back_later_and_answers_the_same(
    trace: list[TraceSample], end: str, asked_ns: list[int]
) -> None:
    layer = playback(trace, end=end)
    for t_ns in asked_ns:
        state = at(layer, t_ns)
        due_s = layer.next_s()
        assert due_s > t_ns / SECOND
        assert at(layer, t_ns) == state
        assert layer.next_s() == due_s
        if math.isfinite(due_s):
            between_ns = (t_ns + round(due_s * SECOND)) // 2
            assert at(playback(trace, end=end), between_ns) == state


loud = st.builds(
    TraceSample,
    length_ns=st.integers(1, 3000).map(lambda ms: ms * 1_000_000),
    down_bps=st.integers(10**5, 10**7),
    up_bps=st.integers(10**5, 10**7),
)


def mean_of(layer: TracePlayback, until_s: float, field: str) -> float:
    seen = changes(layer, until_s)
    moments = [*(t_s for t_s, _ in seen), until_s]
    parts = zip(seen, moments[:-1], moments[1:], strict=True)
    total = sum(getattr(state, field) * (to - since) for (_, state), since, to in parts)
    return float(total) / until_s


@given(st.lists(loud, min_size=1, max_size=8), st.integers(10**6, 10**8), st.integers(1, 3))
def test_a_lap_has_the_mean_that_is_asked_for(
    trace: list[TraceSample], mean_bps: int, laps: int
) -> None:
    until_s = laps * length_ns(trace) / SECOND
    both = {"down_mean_bps": mean_bps, "up_mean_bps": 2 * mean_bps}
    down = mean_of(playback(trace, **both), until_s, "down_rate_bps")
    up = mean_of(playback(trace, **both), until_s, "up_rate_bps")
    assert down == pytest.approx(mean_bps, abs=1)
    assert up == pytest.approx(2 * mean_bps, abs=1)


def test_every_shipped_trace_can_be_played_at_an_lte_rate() -> None:
    for name in library.names():
        layer = playback(list(plain.load(library.find(name))), down_mean_bps=66_700_000)
        rates = [state.down_rate_bps for _, state in changes(layer, 600)]
        assert 66_700_000 < max(rates) <= MAX_RATE_BPS


@pytest.mark.parametrize("mean_bps", [None, 7_000_000])
def test_a_trace_of_delays_leaves_the_links_rates(mean_bps: int | None) -> None:
    layer = playback([TraceSample(SECOND, rtt_s=0.1)], down_mean_bps=mean_bps, up_mean_bps=mean_bps)
    assert at(layer, 0) == replace(BASE, delay_s=0.05)


def test_the_highest_rate_and_the_shortest_sample_are_played() -> None:
    layer = playback([TraceSample(1, MAX_RATE_BPS, MAX_RATE_BPS)])
    assert at(layer, 0).down_rate_bps == at(layer, 0).up_rate_bps == MAX_RATE_BPS
