import math
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linklab.core.link_state import LinkState
from linklab.models.layer import NO_LOAD, Layer, LinkModel, Load, Steps

BASE = LinkState(
    up=True,
    down_rate_bps=8_000_000,
    up_rate_bps=1_000_000,
    delay_s=0.02,
    jitter_s=0.0,
    loss_ratio=0.0,
)


def history(layer: Layer, base: LinkState, until_s: float) -> list[tuple[float, LinkState]]:
    """Every time at which a link changes, with its state from then on."""
    found = [(0.0, layer.apply(0.0, NO_LOAD, base))]
    while (t_s := layer.next_s()) <= until_s:
        assert t_s > found[-1][0]
        found.append((t_s, layer.apply(t_s, NO_LOAD, base)))
    return found


@dataclass
class Scaled:
    """Multiplies the downlink's rate; says when it wants to be asked, and about what."""

    factor: int
    due_s: float = math.inf
    wants_load: bool = False
    wants_connections: bool = False

    def apply(self, t_s: float, load: Load, state: LinkState) -> LinkState:
        return replace(state, down_rate_bps=state.down_rate_bps * self.factor + len(str(t_s)))

    def next_s(self) -> float:
        return self.due_s


def test_without_layers_a_link_is_its_base_for_ever() -> None:
    model = LinkModel(BASE)
    assert model.at(3.0, NO_LOAD) is BASE
    assert model.next_s() == math.inf
    assert not model.wants_load
    assert not model.wants_connections


@given(st.lists(st.integers(1, 5)), st.lists(st.integers(1, 5)), st.floats(0, 1e6))
def test_a_stack_is_its_lower_part_below_its_upper_one(
    lower: list[int], upper: list[int], t_s: float
) -> None:
    whole = LinkModel(BASE, [Scaled(factor) for factor in lower + upper])
    below = LinkModel(BASE, [Scaled(factor) for factor in lower]).at(t_s)
    assert LinkModel(below, [Scaled(factor) for factor in upper]).at(t_s) == whole.at(t_s)


@given(st.lists(st.floats(0, 1e6), min_size=1))
def test_the_earliest_layer_says_when_to_ask_again(times_s: list[float]) -> None:
    assert LinkModel(BASE, [Scaled(1, due_s) for due_s in times_s]).next_s() == min(times_s)


@pytest.mark.parametrize("wish", ["wants_load", "wants_connections"])
def test_one_layer_that_looks_is_enough(wish: str) -> None:
    curious = replace(Scaled(1), **{wish: True})
    assert getattr(LinkModel(BASE, [Scaled(1), curious]), wish)
    assert not getattr(LinkModel(BASE, [Scaled(1)]), wish)


@given(st.floats(1e-3, 10), st.floats(0, 1e4))
def test_the_next_step_lies_ahead_by_one_step_at_most(step_s: float, t_s: float) -> None:
    after_s = Steps(step_s).after(t_s)
    assert t_s < after_s <= t_s + step_s * (1 + 2e-6)


@given(st.sampled_from([0.001, 0.02, 0.1, 1 / 3]), st.integers(0, 100_000))
def test_steps_do_not_drift(step_s: float, number: int) -> None:
    assert Steps(step_s).after(number * step_s) == (number + 1) * step_s
