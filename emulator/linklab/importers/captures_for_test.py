"""Makes captures as other tools write them, and wraps packets in headers; for tests."""

import struct
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Final

import dpkt

Timed = tuple[float, bytes]
"""A time, and a packet that starts with its link's header."""

PHONE_MAC, ROUTER_MAC = b"\x02\0\0\0\0\x02", b"\x02\0\0\0\0\x01"
CLIENT = b"\x0a\x00\x00\x02"


def ip_packets(file: Path) -> list[Timed]:
    """Returns the IP packets of an Ethernet capture."""
    with file.open("rb") as opened:
        return [(float(t_s), content[14:]) for t_s, content in dpkt.pcap.Reader(opened)]


def is_up(packet: bytes) -> bool:
    return packet[12:16] == CLIENT


def pcap_content(
    packets: Iterable[tuple[float | Fraction, bytes]], link_type: int = 1, order: str = "<"
) -> bytes:
    """Returns a pcap file with nanoseconds."""
    made = [struct.pack(f"{order}IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 1 << 18, link_type)]
    for t_s, content in packets:
        seconds, ns = divmod(round(t_s * 10**9), 10**9)
        made.append(struct.pack(f"{order}IIII", seconds, ns, len(content), len(content)) + content)
    return b"".join(made)


def pcap(file: Path, packets: Iterable[Timed], link_type: int = 1) -> Path:
    file.write_bytes(pcap_content(packets, link_type))
    return file


def pcapng(
    file: Path,
    devices: Sequence[tuple[str, int, int, int]],
    packets: Iterable[tuple[float, int, bytes]],
    order: str = "<",
) -> Path:
    file.write_bytes(pcapng_content(devices, packets, order))
    return file


def pcapng_content(
    devices: Sequence[tuple[str, int, int, int]],
    packets: Iterable[tuple[float | Fraction, int, bytes]],
    order: str = "<",
) -> bytes:
    """Returns a pcapng file.

    `devices` are tuples of name, link type, if_tsresol and if_tsoffset. `packets` are tuples of
    time, number of the device, and captured bytes.
    """

    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        return (
            struct.pack(f"{order}II", kind, len(body) + 12)
            + body
            + struct.pack(f"{order}I", len(body) + 12)
        )

    def option(code: int, value: bytes) -> bytes:
        return struct.pack(f"{order}HH", code, len(value)) + value + bytes(-len(value) % 4)

    made = [block(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1))]
    for name, link_type, resolution, offset_s in devices:
        options = option(2, name.encode()) if name else b""
        options += option(9, bytes([resolution])) + option(14, struct.pack(f"{order}q", offset_s))
        made.append(block(1, struct.pack(f"{order}HHI", link_type, 0, 0) + options + bytes(4)))
    for t_s, number, content in packets:
        resolution, offset_s = devices[number][2:]
        per_s = 2 ** (resolution & 0x7F) if resolution & 0x80 else 10**resolution
        ticks = round((t_s - offset_s) * per_s)
        head = struct.pack(
            f"{order}IIIII", number, ticks >> 32, ticks & 0xFFFFFFFF, len(content), len(content)
        )
        made.append(block(6, head + content))
    return b"".join(made)


def ethernet(packet: bytes, ethertype: int = 0x0800) -> bytes:
    ends = ROUTER_MAC + PHONE_MAC if is_up(packet) else PHONE_MAC + ROUTER_MAC
    return ends + struct.pack(">H", ethertype) + packet


def _vlan(packet: bytes) -> bytes:
    return ethernet(packet, 0x8100)[:14] + b"\0\x0a\x08\0" + packet


def _double_vlan(packet: bytes) -> bytes:
    return ethernet(packet, 0x88A8)[:14] + b"\0\x0a\x81\0\0\x0b\x08\0" + packet


def outer(packet: bytes, protocol: int, header: bytes = b"") -> bytes:
    """Wraps a packet in an IP packet."""
    ends = (
        (b"\x0a\x09\0\x02", b"\x0a\x09\0\x01")
        if is_up(packet)
        else (b"\x0a\x09\0\x01", b"\x0a\x09\0\x02")
    )
    length = 20 + len(header) + len(packet)
    return (
        struct.pack(">BBHHHBBH", 0x45, 0, length, 7, 0, 64, protocol, 0)
        + b"".join(ends)
        + header
        + packet
    )


def udp(packet: bytes, port: int, header: bytes) -> bytes:
    size = 8 + len(header) + len(packet)
    return outer(packet, 17, struct.pack(">HHHH", 40000, port, size, 0) + header)


def sll(packet: bytes, ethertype: int = 0x0800, mac: bytes = PHONE_MAC, kind: int = 1) -> bytes:
    went_out, sender = (4, mac) if is_up(packet) else (0, ROUTER_MAC[: len(mac)])
    return struct.pack(">HHH8sH", went_out, kind, len(sender), sender, ethertype) + packet


def sll_2(
    packet: bytes, number: int = 3, ethertype: int = 0x0800, out: bool | None = None
) -> bytes:
    went_out = is_up(packet) if out is None else out
    head = struct.pack(">HHIHBB8s", ethertype, 0, number, 1, 4 if went_out else 0, 6, PHONE_MAC)
    return head + packet


READABLE: Final[dict[str, tuple[int, Callable[[bytes], bytes]]]] = {
    "Ethernet": (1, ethernet),
    "raw IP": (101, bytes),
    "raw IP (12)": (12, bytes),
    "IPv4": (228, bytes),
    "cooked": (113, sll),
    "cooked 2": (276, sll_2),
    "VLAN": (1, _vlan),
    "two VLANs": (1, _double_vlan),
    "VLAN in cooked": (113, lambda packet: sll(packet, 0x8100)[:16] + _vlan(packet)[14:]),
    "VLAN in cooked 2": (276, lambda packet: sll_2(packet, 3, 0x8100)[:20] + _vlan(packet)[14:]),
}
"""Supported encapsulations: link type, and a function that wraps an IP packet."""

OPAQUE: Final[dict[str, tuple[int, Callable[[bytes], bytes]]]] = {
    "WireGuard": (1, lambda packet: ethernet(udp(packet, 51820, b"\x04\0\0\0"))),
    "ESP": (1, lambda packet: ethernet(outer(packet, 50))),
    "ESP in UDP": (113, lambda packet: sll(udp(packet, 4500, b""))),
    "OpenVPN": (276, lambda packet: sll_2(udp(packet, 1194, b""))),
    "QUIC": (1, lambda packet: ethernet(udp(packet, 443, b""))),
    "ethertype 0x1234": (1, lambda packet: ethernet(packet, 0x1234)),
    "IP's protocol 115": (1, lambda packet: ethernet(outer(packet, 115))),
    "fragments of IP": (
        1,
        lambda packet: ethernet(packet[:6] + b"\x20\0" + packet[8:]),
    ),
    "packets that were cut off": (1, lambda packet: ethernet(packet)[:40]),
    "link type 300": (300, bytes),
}
"""Unsupported encapsulations, by the words of their error."""
