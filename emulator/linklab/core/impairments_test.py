from msgspec import UNSET

from linklab.core.impairments import NO_IMPAIRMENTS, Impairments


def test_a_change_replaces_only_what_it_sets() -> None:
    one = Impairments(loss_ratio=0.02, loss_burst_packets=3.0, delay_s=0.01)
    changed = one.changed(Impairments(loss_ratio=0.0, duplicate_ratio=0.5))
    assert changed == Impairments(0.0, 3.0, 0.01, duplicate_ratio=0.5)
    assert one.changed(UNSET) is one
    assert NO_IMPAIRMENTS.changed(one) == one


def test_what_is_not_set_impairs_nothing() -> None:
    assert (NO_IMPAIRMENTS.lost_ratio, NO_IMPAIRMENTS.added_delay_s) == (0.0, 0.0)
    assert (Impairments(0.5).lost_ratio, Impairments(delay_s=0.2).added_delay_s) == (0.5, 0.2)
