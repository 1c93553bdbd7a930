"""Tests other_way.py. Its downloads: tests/loss_fetching_test.py."""

import socket
from contextlib import ExitStack, closing

import pytest

from linklab.lab.kernel import rtnetlink
from linklab.lab.kernel.netlink import Channel
from linklab.lab.super_aggregation import tcp_segment
from linklab.lab.super_aggregation.other_way import BOTH_S, TELLS_S, OtherWay
from linklab.lab.super_aggregation.tcp_segment import ACK, Segment

LOOPBACK = "127.0.0.1"
TRIP_S = 0.06
LAST = Segment(40_000, 80, 7, 1_448_001, ACK, 0xFFFF)


@pytest.fixture
def way(loopback: ExitStack) -> OtherWay:
    made = OtherWay("lo", LOOPBACK, LOOPBACK)
    loopback.callback(made.close)
    made.opened(TRIP_S)
    return made


def test_before_the_first_data_no_link_is_silent(way: OtherWay) -> None:
    assert way.due_s is None
    assert not way.is_silent(1e9)


def test_a_silent_sender_is_told_again_and_again(way: OtherWay) -> None:
    assert not way.heard(5.0)
    assert way.due_s == 5.0 + TRIP_S
    assert not way.is_silent(5.0 + TRIP_S / 2)
    assert way.is_silent(5.0 + TRIP_S)
    assert not way.is_silent(5.0 + TRIP_S)
    assert way.due_s == 5.0 + TRIP_S + TELLS_S
    assert way.is_silent(way.due_s)
    assert way.heard(6.0)
    assert not way.heard(6.01)
    assert way.due_s == 6.01 + TRIP_S


def test_around_a_silence_acknowledgements_leave_over_both_links(way: OtherWay) -> None:
    packet = tcp_segment.packed(LAST, *(socket.inet_aton(LOOPBACK),) * 2)
    way.heard(5.0)
    assert way.takes(packet, 5.0)
    assert way.is_silent(6.0)
    assert not way.takes(packet, 6.0)
    way.heard(7.0)
    assert not way.takes(packet, 7.0 + BOTH_S / 2)
    assert way.takes(packet, 7.0 + BOTH_S)


def test_the_packet_leaves_and_a_link_that_is_down_takes_none(
    way: OtherWay, loopback: ExitStack
) -> None:
    arrived = loopback.enter_context(
        socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)
    )
    arrived.settimeout(10)
    packet = tcp_segment.packed(LAST, *(socket.inet_aton(LOOPBACK),) * 2)
    assert way.takes(packet, 5.0)
    assert tcp_segment.parsed(arrived.recv(200)) == LAST
    channel = loopback.enter_context(closing(Channel()))
    channel.request(rtnetlink.set_up(socket.if_nametoindex("lo"), up=False))
    assert not way.takes(packet, 5.0)
    way.tell(LAST)
