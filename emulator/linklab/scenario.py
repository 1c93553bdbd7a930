"""Scenarios: what a run emulates, read from YAML and checked down to the line.

A scenario is the single description of a run that both places, host and guest, and the
oracle work from. Whatever is wrong with a file is said as one ScenarioError:

    profiles/x.yaml:12: links.wifi.down: '80' has no unit; allowed: a rate such as '80 Mbit/s'

The form of the file (keys marked * are needed, the others show their defaults):

    name*: wifi-outage            # the file's name without .yaml
    title: ''                     # one line
    description: ''
    source: ''                    # where the figures come from
    payload*: {size*: 100 MB, seed: 1, sha256: …}
    links*:                       # exactly wifi and lte
      wifi: {down*: 60 Mbit/s, up*: 20 Mbit/s, rtt*: 10 ms, jitter: 0 s, loss: 0 %,
             queue: …, queue_down: …, queue_up: …, bandwidth: …}
      lte: {…}
    events:                       # in time order for each link; anything left out stays
      - {at*: 2 s, link*: wifi, carrier: down, down: …, up: …, rtt: …, jitter: …, loss: …}
    tcp: {congestion_control: cubic, rmem_max: 16 MiB, wmem_max: 16 MiB, metrics_save: false,
          mptcp: false}
    client: {upper_limit: 1 MB, padding: 10 %, overlap: 60 %, window: 1 s, first_request: 1 MB}
    published:
      - {algorithm*: alg3, download*: 16.55 s, link_delta: 0.5 s, source: thesis table 5.12}

YAML anchors, aliases and merge keys work; a key given twice is refused.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NoReturn, TypeVar

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from linklab import units
from linklab.paths import PROFILES

DEVICES: Final = {"wifi": "wlan0", "lte": "rmnet0"}
"""Every link's device in the lab, in the order in which links are listed everywhere."""

CONGESTION_CONTROLS: Final = ("reno", "cubic", "bbr", "dctcp", "vegas", "westwood")

PACKET_BYTES: Final = 1514
"""The largest packet as Linux' qdiscs count it: an MTU of 1500 and the Ethernet header."""

MIN_RATE_BPS: Final = 1_000
"""Below this a link takes over 12 s for one packet; what is meant then is a lost carrier."""

MAX_RATE_BPS: Final = 10_000_000_000
MAX_PAYLOAD_BYTES: Final = 10_000_000_000
MAX_RTT_S: Final = 10.0
MAX_TIME_S: Final = 86_400.0
MAX_QUEUE_BYTES: Final = 1_000_000_000

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_MERGE_TAG = "tag:yaml.org,2002:merge"
_NULL_TAG = "tag:yaml.org,2002:null"

T = TypeVar("T")


class ScenarioError(ValueError):
    """A scenario that cannot be found, read or emulated; the text says where and why."""


@dataclass(frozen=True, slots=True)
class Payload:
    """The file that is downloaded: bytes generated from `seed` (see linklab.payload)."""

    size_bytes: int
    seed: int = 1
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class TcpSettings:
    """Kernel settings of both end hosts.

    The defaults are those under which the peers were measured: cubic, tcp_rmem and
    tcp_wmem up to 16 MiB, nothing remembered between connections, plain TCP.
    """

    congestion_control: str = "cubic"
    rmem_max_bytes: int = 16 << 20
    wmem_max_bytes: int = 16 << 20
    metrics_save: bool = False
    mptcp: bool = False


@dataclass(frozen=True, slots=True)
class LinkSettings:
    """A link before its first event.

    `jitter_s` is how far the one-way delay, rtt_s/2, strays to either side. `loss_ratio`
    is the share of downlink packets that are lost before the queue. The queues are
    drop-tail. `bandwidth_bps` is B_x of thesis 4.3.4 and 4.3.5, what the algorithms take
    for the link's capacity; 1.3 times the true rate reproduces the thesis' link Δ.
    """

    device: str
    down_rate_bps: int
    up_rate_bps: int
    rtt_s: float
    jitter_s: float
    loss_ratio: float
    queue_down_bytes: int
    queue_up_bytes: int
    bandwidth_bps: int


@dataclass(frozen=True, slots=True)
class Event:
    """A change of one link at `at_s` seconds after the start; None leaves a value as it is."""

    at_s: float
    link: str
    carrier: str | None = None
    down_rate_bps: int | None = None
    up_rate_bps: int | None = None
    rtt_s: float | None = None
    jitter_s: float | None = None
    loss_ratio: float | None = None


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Constants of the thesis' algorithms, the same in all scenarios unless said otherwise.

    `upper_limit_bytes` U of algorithm 1 (thesis 4.3.3; its value is not given there, 1 MB
    reproduces its results), `padding` f of padded algorithm 3 (4.3.5), `overlap` the share
    of a request after which the next is issued, `window_s` over which throughput is taken,
    `first_request_bytes` the initial size that the links share.
    """

    upper_limit_bytes: int = 1_000_000
    padding: float = 0.1
    overlap: float = 0.6
    window_s: float = 1.0
    first_request_bytes: int = 1_000_000


@dataclass(frozen=True, slots=True)
class Published:
    """What a publication reports for one algorithm in this scenario."""

    algorithm: str
    download_s: float
    source: str = ""
    link_delta_s: float | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    """A validated scenario; `path` is the file it was read from and not part of equality."""

    name: str
    title: str
    description: str
    source: str
    payload: Payload
    links: dict[str, LinkSettings]
    events: tuple[Event, ...] = ()
    tcp: TcpSettings = TcpSettings()
    client: ClientSettings = ClientSettings()
    published: tuple[Published, ...] = ()
    path: Path | None = field(default=None, compare=False)


def default_queue_bytes(rate_bps: int) -> int:
    """Drop-tail queue of max(1 MB, 0.4 s of the rate), an assumption for LTE and Wi-Fi.

    Not more than 1 GB, which only rates above 20 Gbit/s would ask for.
    """
    return min(max(1_000_000, rate_bps * 4 // 10 // 8), MAX_QUEUE_BYTES)


def default_bandwidth_bps(down_rate_bps: int) -> int:
    """1.3 times the true rate: reproduces the link Δ of 2.6-4.6 s of thesis table 5.10."""
    return down_rate_bps * 13 // 10


def load(path: str | os.PathLike[str], *, any_name: bool = False) -> Scenario:
    """The scenario in a file. Raises ScenarioError.

    `any_name` lifts the rule that the file is called after the scenario, for the copy in a
    run directory.
    """
    file = Path(path)
    shown = _shown(file)
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise ScenarioError(f"{shown}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ScenarioError(f"{shown}: is not UTF-8 text") from error
    return parse(text, shown, path=file, stem=None if any_name else file.stem)


def find(name_or_path: str, directory: Path = PROFILES) -> Scenario:
    """The scenario of a name in `directory`, or of a path. Raises ScenarioError.

    Anything with a slash or the ending .yaml or .yml is a path.
    """
    if "/" in name_or_path or name_or_path.endswith((".yaml", ".yml")):
        return load(name_or_path)
    file = directory / f"{name_or_path}.yaml"
    if _NAME.fullmatch(name_or_path) and file.is_file():
        return load(file)
    names = names_in(directory)
    raise ScenarioError(
        f"no scenario is called {name_or_path!r}{_guess(name_or_path, names)}; "
        f"there are: {', '.join(names) or 'none'} (or give a path that ends in .yaml)"
    )


def names_in(directory: Path = PROFILES) -> list[str]:
    """The names of the scenarios in `directory`, sorted, without reading them."""
    return sorted(file.stem for file in directory.glob("*.yaml"))


def list_all(directory: Path = PROFILES) -> list[Scenario]:
    """Every scenario in `directory`, by name. Raises ScenarioError at the first bad one."""
    return [load(directory / f"{name}.yaml") for name in names_in(directory)]


def parse(
    text: str, shown: str = "<text>", *, path: Path | None = None, stem: str | None = None
) -> Scenario:
    """The scenario in YAML text. `shown` names the file in errors, `stem` must be its name.

    Raises ScenarioError.
    """
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f"{mark.line + 1}: " if mark else " "
        problem = ", ".join(part for part in (error.context, error.problem) if part)
        raise ScenarioError(f"{shown}:{line}not valid YAML: {problem}") from error
    except yaml.reader.ReaderError as error:
        line_number = text.count("\n", 0, error.position) + 1
        problem = f"character {error.character!r} is not allowed"
        raise ScenarioError(f"{shown}:{line_number}: not valid YAML: {problem}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise ScenarioError(f"{shown}: not valid YAML: {error}") from error
    except RecursionError as error:
        raise ScenarioError(f"{shown}: is nested too deeply") from error
    if root is None:
        raise ScenarioError(f"{shown}:1: the file is empty; needed: name, payload, links")
    return _scenario(_Map(shown, root, "", _SCENARIO_KEYS), path, stem)


def _shown(path: Path) -> str:
    """A path as messages give it: relative to the working directory where it lies below."""
    try:
        return str(path.resolve().relative_to(Path.cwd().resolve()))
    except (OSError, ValueError):
        return str(path)


def _guess(word: str, known: Collection[str]) -> str:
    import difflib  # Here because it is slow to load, and needed for errors only.

    close = difflib.get_close_matches(word, known, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


# --- Reading: one _Map for each mapping of the file, so that every error has its place.


@dataclass(frozen=True, slots=True)
class _Keys:
    needed: tuple[str, ...]
    optional: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        return self.needed + self.optional


_LINK_CHANGES = ("down", "up", "rtt", "jitter", "loss")
_SCENARIO_KEYS = _Keys(
    ("name", "payload", "links"),
    ("title", "description", "source", "events", "tcp", "client", "published"),
)
_PAYLOAD_KEYS = _Keys(("size",), ("seed", "sha256"))
_LINKS_KEYS = _Keys(tuple(DEVICES))
_LINK_KEYS = _Keys(
    ("down", "up", "rtt"), ("jitter", "loss", "queue", "queue_down", "queue_up", "bandwidth")
)
_EVENT_KEYS = _Keys(("at", "link"), ("carrier", *_LINK_CHANGES))
_TCP_KEYS = _Keys((), ("congestion_control", "rmem_max", "wmem_max", "metrics_save", "mptcp"))
_CLIENT_KEYS = _Keys((), ("upper_limit", "padding", "overlap", "window", "first_request"))
_PUBLISHED_KEYS = _Keys(("algorithm", "download"), ("link_delta", "source"))


class _Map:
    """A mapping of the file: hands out its values converted, refuses with file and line."""

    def __init__(self, shown: str, node: Node, where: str, keys: _Keys) -> None:
        self.shown = shown
        self.node = node
        self.where = where
        if not isinstance(node, MappingNode):
            self.fail(None, f"must be a mapping with the keys {', '.join(keys.all)}")
        self.values = self._entries(node, keys, set())
        for key in keys.needed:
            if key not in self.values:
                message = f"{key!r} is missing; needed: {', '.join(keys.needed)}"
                if keys.optional:
                    message += f"; optional: {', '.join(keys.optional)}"
                self.fail(None, message)

    def _entries(self, node: MappingNode, keys: _Keys, merging: set[int]) -> dict[str, Node]:
        """The mapping's values by key; those of merged mappings where it has none itself."""
        own: dict[str, Node] = {}
        lines: dict[str, int] = {}
        merged: dict[str, Node] = {}
        for key_node, value in node.value:
            if key_node.tag == _MERGE_TAG:
                for name, inherited in self._merge(value, keys, merging).items():
                    merged.setdefault(name, inherited)
                continue
            if not isinstance(key_node, ScalarNode):
                self.fail_at(key_node, self.where, "a key must be a word")
            key = key_node.value
            if key not in keys.all:
                self.fail_at(
                    key_node,
                    self.where,
                    f"unknown key {key!r}{_guess(key, keys.all)}; allowed: {', '.join(keys.all)}",
                )
            if key in own:
                self.fail_at(
                    key_node, self.path(key), f"is given twice, first in line {lines[key]}"
                )
            own[key] = value
            lines[key] = key_node.start_mark.line + 1
        return {**merged, **own}

    def _merge(self, value: Node, keys: _Keys, merging: set[int]) -> dict[str, Node]:
        merged: dict[str, Node] = {}
        for node in value.value if isinstance(value, SequenceNode) else [value]:
            if not isinstance(node, MappingNode) or id(node) in merging:
                self.fail_at(value, self.where, "'<<' merges mappings only, and not into itself")
            for name, inherited in self._entries(node, keys, merging | {id(node)}).items():
                merged.setdefault(name, inherited)
        return merged

    def path(self, key: str | None) -> str:
        return ".".join(part for part in (self.where, key) if part)

    def fail_at(self, node: Node, where: str, message: str) -> NoReturn:
        place = f"{self.shown}:{node.start_mark.line + 1}: "
        raise ScenarioError(place + (f"{where}: {message}" if where else message))

    def fail(self, key: str | None, message: str) -> NoReturn:
        """Refuses the value of `key`, or the mapping itself."""
        node = self.values[key] if key is not None and key in self.values else self.node
        self.fail_at(node, self.path(key), message)

    def has(self, key: str) -> bool:
        return key in self.values

    def get(self, key: str, convert: Callable[[str], T]) -> T:
        """The scalar `key` through `convert`, whose ValueError becomes the scenario's error."""
        node = self.values[key]
        if not isinstance(node, ScalarNode):
            self.fail(key, "must be a single value")
        if node.tag == _NULL_TAG and not node.style:
            self.fail(key, "has no value")
        try:
            return convert(node.value)
        except ValueError as error:
            self.fail(key, str(error))

    def get_or(self, key: str, convert: Callable[[str], T], default: T) -> T:
        return self.get(key, convert) if key in self.values else default

    def sub(self, key: str, keys: _Keys) -> _Map:
        return _Map(self.shown, self.values[key], self.path(key), keys)

    def items(self, key: str, keys: _Keys) -> list[_Map]:
        """The mappings in the list `key`; none where it is missing."""
        if key not in self.values:
            return []
        node = self.values[key]
        if not isinstance(node, SequenceNode):
            self.fail(key, "must be a list")
        return [
            _Map(self.shown, item, f"{self.path(key)}[{index}]", keys)
            for index, item in enumerate(node.value)
        ]


# --- Converters of scalars: text to value, or ValueError with what is wrong and allowed.


def _within(parse_one: Callable[[str], T], low: T, high: T, form: str) -> Callable[[str], T]:
    """`parse_one`, refusing values outside low..high with `form`, what is allowed."""

    def convert(text: str) -> T:
        value = parse_one(text)
        if not low <= value <= high:  # type: ignore[operator]
            raise ValueError(f"{text!r} is out of range; allowed: {form}")
        return value

    return convert


def _rate(text: str) -> int:
    rate = units.parse_rate(text)
    if rate < MIN_RATE_BPS:
        raise ValueError(
            f"{text!r} is too little to be a rate; allowed: at least "
            f"{units.format_rate(MIN_RATE_BPS)} (for an outage write 'carrier: down' in an event)"
        )
    if rate > MAX_RATE_BPS:
        raise ValueError(
            f"{text!r} is more than can be shaped; allowed: at most "
            f"{units.format_rate(MAX_RATE_BPS)}"
        )
    return rate


def _integer(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,19}", text):
        raise ValueError(f"{text!r} is not a whole number; allowed: 0 to 9223372036854775807")
    return int(text)


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(f"{text!r} is neither; allowed: true, false")
    return text.lower() == "true"


def _one_of(*allowed: str) -> Callable[[str], str]:
    def convert(text: str) -> str:
        if text not in allowed:
            raise ValueError(
                f"unknown value {text!r}{_guess(text, allowed)}; allowed: {', '.join(allowed)}"
            )
        return text

    return convert


def _name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise ValueError(
            f"{text!r} is no name; allowed: up to 64 of a-z, 0-9 and '-', such as 'static-80-50'"
        )
    return text


def _sha256(text: str) -> str:
    if not _SHA256.fullmatch(text):
        raise ValueError(f"{text!r} is no SHA-256; allowed: 64 digits of 0-9 and a-f")
    return text


_size = _within(
    units.parse_size, 1, MAX_PAYLOAD_BYTES, f"1 B to {units.format_size(MAX_PAYLOAD_BYTES)}"
)
_queue = _within(
    units.parse_size,
    PACKET_BYTES,
    MAX_QUEUE_BYTES,
    f"{PACKET_BYTES} B (one packet) to {units.format_size(MAX_QUEUE_BYTES)}",
)
_buffer = _within(units.parse_size, 4096, (1 << 31) - 1, "4096 B to 2 GiB less 1 B")
_time = _within(units.parse_duration, 0.0, MAX_TIME_S, f"0 s to {MAX_TIME_S:.0f} s")
_round_trip = _within(units.parse_duration, 0.0, MAX_RTT_S, f"0 s to {MAX_RTT_S:.0f} s")
_window = _within(units.parse_duration, 1e-3, 3600.0, "1 ms to 3600 s")
_share = _within(units.parse_ratio, 0.0, 1.0, "0 % to 100 %, such as '0.3 %'")
_carrier = _one_of("up", "down")
_link = _one_of(*DEVICES)
_congestion_control = _one_of(*CONGESTION_CONTROLS)


# --- Building the scenario.


def _scenario(top: _Map, path: Path | None, stem: str | None) -> Scenario:
    name = top.get("name", _name)
    if stem is not None and name != stem:
        top.fail("name", f"{name!r} differs from the file's name; allowed: {stem!r}")
    payload = top.sub("payload", _PAYLOAD_KEYS)
    link_maps = top.sub("links", _LINKS_KEYS)
    links = {link: _settings(link_maps.sub(link, _LINK_KEYS), link) for link in DEVICES}
    return Scenario(
        name=name,
        title=top.get_or("title", str.strip, ""),
        description=top.get_or("description", str.strip, ""),
        source=top.get_or("source", str.strip, ""),
        payload=Payload(
            size_bytes=payload.get("size", _size),
            seed=payload.get_or("seed", _within(_integer, 0, (1 << 63) - 1, "below 2^63"), 1),
            sha256=payload.get("sha256", _sha256) if payload.has("sha256") else None,
        ),
        links=links,
        events=_events(top.items("events", _EVENT_KEYS), links),
        tcp=_tcp(top.sub("tcp", _TCP_KEYS)) if top.has("tcp") else TcpSettings(),
        client=_client(top.sub("client", _CLIENT_KEYS)) if top.has("client") else ClientSettings(),
        published=_published(top.items("published", _PUBLISHED_KEYS)),
        path=path,
    )


def _settings(link: _Map, name: str) -> LinkSettings:
    down = link.get("down", _rate)
    up = link.get("up", _rate)
    rtt = link.get("rtt", _round_trip)
    jitter = link.get_or("jitter", _round_trip, 0.0)
    _check_jitter(link, jitter, rtt)
    queue = link.get("queue", _queue) if link.has("queue") else None
    return LinkSettings(
        device=DEVICES[name],
        down_rate_bps=down,
        up_rate_bps=up,
        rtt_s=rtt,
        jitter_s=jitter,
        loss_ratio=link.get_or("loss", _share, 0.0),
        queue_down_bytes=link.get_or("queue_down", _queue, queue or default_queue_bytes(down)),
        queue_up_bytes=link.get_or("queue_up", _queue, queue or default_queue_bytes(up)),
        bandwidth_bps=link.get_or("bandwidth", _bandwidth, default_bandwidth_bps(down)),
    )


def _bandwidth(text: str) -> int:
    """B_x is only what algorithms believe, so it may exceed what can be shaped."""
    limit = 2 * MAX_RATE_BPS
    allowed = f"{units.format_rate(MIN_RATE_BPS)} to {units.format_rate(limit)}"
    return _within(units.parse_rate, MIN_RATE_BPS, limit, allowed)(text)


def _check_jitter(where: _Map, jitter_s: float, rtt_s: float) -> None:
    """A one-way delay of rtt/2 cannot stray below zero."""
    if jitter_s > rtt_s / 2:
        where.fail(
            "jitter" if where.has("jitter") else "rtt",
            f"a jitter of {units.format_duration(jitter_s)} does not fit an rtt of "
            f"{units.format_duration(rtt_s)}; allowed: a jitter of at most half the rtt, "
            f"{units.format_duration(rtt_s / 2)}",
        )


def _events(maps: list[_Map], links: dict[str, LinkSettings]) -> tuple[Event, ...]:
    events = []
    last: dict[str, float] = {}
    rtts = {name: link.rtt_s for name, link in links.items()}
    jitters = {name: link.jitter_s for name, link in links.items()}
    for item in maps:
        event = Event(
            at_s=item.get("at", _time),
            link=item.get("link", _link),
            carrier=item.get("carrier", _carrier) if item.has("carrier") else None,
            down_rate_bps=item.get("down", _rate) if item.has("down") else None,
            up_rate_bps=item.get("up", _rate) if item.has("up") else None,
            rtt_s=item.get("rtt", _round_trip) if item.has("rtt") else None,
            jitter_s=item.get("jitter", _round_trip) if item.has("jitter") else None,
            loss_ratio=item.get("loss", _share) if item.has("loss") else None,
        )
        link = event.link
        if not any(item.has(key) for key in ("carrier", *_LINK_CHANGES)):
            item.fail(None, f"changes nothing; allowed: any of carrier, {', '.join(_LINK_CHANGES)}")
        if link in last and event.at_s <= last[link]:
            item.fail(
                "at",
                f"{units.format_duration(event.at_s)} is not after the event of {link} before "
                f"it; allowed: more than {units.format_duration(last[link])}",
            )
        last[link] = event.at_s
        rtts[link] = rtts[link] if event.rtt_s is None else event.rtt_s
        jitters[link] = jitters[link] if event.jitter_s is None else event.jitter_s
        _check_jitter(item, jitters[link], rtts[link])
        events.append(event)
    return tuple(events)


def _tcp(tcp: _Map) -> TcpSettings:
    default = TcpSettings()
    return TcpSettings(
        congestion_control=tcp.get_or(
            "congestion_control", _congestion_control, default.congestion_control
        ),
        rmem_max_bytes=tcp.get_or("rmem_max", _buffer, default.rmem_max_bytes),
        wmem_max_bytes=tcp.get_or("wmem_max", _buffer, default.wmem_max_bytes),
        metrics_save=tcp.get_or("metrics_save", _boolean, default.metrics_save),
        mptcp=tcp.get_or("mptcp", _boolean, default.mptcp),
    )


def _client(client: _Map) -> ClientSettings:
    default = ClientSettings()
    return ClientSettings(
        upper_limit_bytes=client.get_or("upper_limit", _size, default.upper_limit_bytes),
        padding=client.get_or("padding", _share, default.padding),
        overlap=client.get_or("overlap", _share, default.overlap),
        window_s=client.get_or("window", _window, default.window_s),
        first_request_bytes=client.get_or("first_request", _size, default.first_request_bytes),
    )


def _published(maps: list[_Map]) -> tuple[Published, ...]:
    published: list[Published] = []
    for item in maps:
        row = Published(
            algorithm=item.get("algorithm", _name),
            download_s=item.get("download", _time),
            source=item.get_or("source", str.strip, ""),
            link_delta_s=item.get("link_delta", _time) if item.has("link_delta") else None,
        )
        if row.download_s == 0:
            item.fail("download", "'0 s' is no download; allowed: a duration such as '16.55 s'")
        if any(row.algorithm == other.algorithm for other in published):
            item.fail("algorithm", f"{row.algorithm!r} is listed twice")
        published.append(row)
    return tuple(published)


# --- Writing.


class _Flow(dict[str, object]):
    """A mapping that is written on one line."""


class _Dumper(yaml.SafeDumper):
    """Block style at the top, _Flow mappings on one line, lists indented."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: object) -> bool:
        return True


_Dumper.add_representer(
    _Flow,
    lambda dumper, data: dumper.represent_mapping(
        "tag:yaml.org,2002:map", data.items(), flow_style=True
    ),
)


def to_yaml(scenario: Scenario) -> str:
    """The canonical form: every value written out, defaults too; loads to the same scenario."""
    document: dict[str, object] = {"name": scenario.name}
    for key in ("title", "description", "source"):
        if value := getattr(scenario, key):
            document[key] = value
    document["payload"] = _without_none(
        size=units.format_size(scenario.payload.size_bytes),
        seed=scenario.payload.seed,
        sha256=scenario.payload.sha256,
    )
    document["links"] = {name: _link_yaml(link) for name, link in scenario.links.items()}
    if scenario.events:
        document["events"] = [_event_yaml(event) for event in scenario.events]
    tcp, client = scenario.tcp, scenario.client
    document["tcp"] = _Flow(
        congestion_control=tcp.congestion_control,
        rmem_max=units.format_size(tcp.rmem_max_bytes),
        wmem_max=units.format_size(tcp.wmem_max_bytes),
        metrics_save=tcp.metrics_save,
        mptcp=tcp.mptcp,
    )
    document["client"] = _Flow(
        upper_limit=units.format_size(client.upper_limit_bytes),
        padding=units.format_ratio(client.padding),
        overlap=units.format_ratio(client.overlap),
        window=units.format_duration(client.window_s),
        first_request=units.format_size(client.first_request_bytes),
    )
    if scenario.published:
        document["published"] = [
            _without_none(
                algorithm=row.algorithm,
                download=units.format_duration(row.download_s),
                link_delta=_formatted(units.format_duration, row.link_delta_s),
                source=row.source or None,
            )
            for row in scenario.published
        ]
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10**6)


def _without_none(**values: object) -> _Flow:
    return _Flow({key: value for key, value in values.items() if value is not None})


def _formatted(form: Callable[[T], str], value: T | None) -> str | None:
    return None if value is None else form(value)


def _link_yaml(link: LinkSettings) -> _Flow:
    same = link.queue_down_bytes == link.queue_up_bytes
    down, up = units.format_size(link.queue_down_bytes), units.format_size(link.queue_up_bytes)
    return _without_none(
        down=units.format_rate(link.down_rate_bps),
        up=units.format_rate(link.up_rate_bps),
        rtt=units.format_duration(link.rtt_s),
        jitter=units.format_duration(link.jitter_s),
        loss=units.format_ratio(link.loss_ratio),
        queue=down if same else None,
        queue_down=None if same else down,
        queue_up=None if same else up,
        bandwidth=units.format_rate(link.bandwidth_bps),
    )


def _event_yaml(event: Event) -> _Flow:
    return _without_none(
        at=units.format_duration(event.at_s),
        link=event.link,
        carrier=event.carrier,
        down=_formatted(units.format_rate, event.down_rate_bps),
        up=_formatted(units.format_rate, event.up_rate_bps),
        rtt=_formatted(units.format_duration, event.rtt_s),
        jitter=_formatted(units.format_duration, event.jitter_s),
        loss=_formatted(units.format_ratio, event.loss_ratio),
    )
