"""Opens a lab on the real clock for Python programs: `linklab.live`.

The lab is a process of its own, `linklab live`. So it neither prints into the program nor ends with
one of its threads.
"""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from linklab.api import environment, requests
from linklab.api.errors import UsageError
from linklab.api.lab_process import LabProcess, lab_process
from linklab.api.progress import Tell, silent
from linklab.api.requests import require_no_nul
from linklab.api.settings import RUNS, RunOptions, Settings, StrPath
from linklab.lab.player.control import Command
from linklab.realtime import link_command, session
from linklab.realtime.address import parse
from linklab.realtime.one_lab import START_S
from linklab.schema.mapping import guess


@dataclass(frozen=True)
class LabLink:
    """A link of an open lab. Its methods return when the lab has applied the change.

    Changes last until the next one, or for `seconds` if given. Raises UsageError for a change that
    the link cannot do, or if the lab has ended.
    """

    name: str
    _lab: OpenLab = field(repr=False)

    def set(self, *, seconds: float | None = None, **change: Any) -> None:
        """Changes what the keys say, which are those of events in scenarios: `set(down="2 Mbit/s",
        carrier="up", impair_up={"loss": "1 %"})`."""
        if seconds is not None:
            change["for"] = f"{seconds:.6f} s"
        try:
            self._lab.send(link_command.command_of(self.name, change))
        except (ValueError, RuntimeError) as error:
            raise UsageError(f"{self.name}: {error}") from error

    def become(self, line: str, *, seconds: float | None = None) -> None:
        """Makes the link what a line says, as of `linklab run --link`: `become("fast-4g")`. What the
        line leaves out is as the scenario says."""
        try:
            self.set(seconds=seconds, **link_command.as_line(line))
        except ValueError as error:
            raise UsageError(f"{self.name}: {error}") from error

    def restore(self) -> None:
        """Makes the link as the scenario says."""
        self.set(restore=True)


@dataclass(frozen=True)
class CarriedBytes:
    """What a link has carried since the lab's start or `restore`, with all headers.

    Attributes:
        bytes: those that the client received over it, as in a run's figures.
        sent_bytes: those that the client sent over it.
    """

    bytes: int
    sent_bytes: int


@dataclass(frozen=True)
class OpenLab:
    """A lab on the real clock.

    Attributes:
        proxy: the URL of an HTTP and SOCKS5 proxy over all links, for `http_proxy`.
        proxies: the URLs of the proxies over one link, by its name.
        origins: the URLs of the given origins, as they are behind the links.
        metrics: the URL of its metrics for Prometheus.
    """

    proxy: str
    proxies: dict[str, str]
    origins: tuple[str, ...]
    metrics: str
    _address: tuple[str, int] = field(repr=False)
    _process: LabProcess = field(repr=False)

    @property
    def origin(self) -> str:
        """The first origin's URL as it is behind the links. Raises UsageError without one."""
        if not self.origins:
            raise UsageError("the lab has no origin; allowed: linklab.live(…, origin=URL)")
        return self.origins[0]

    def link(self, name: str) -> LabLink:
        """Returns a link by name. Raises UsageError."""
        if name not in self.proxies:
            raise UsageError(
                f"no link is called {name!r}{guess(name, self.proxies)}; "
                f"there are: {', '.join(self.proxies)}"
            )
        return LabLink(name, self)

    def become(self, scenario: StrPath) -> dict[str, list[str]]:
        """Gives the links the values that another scenario has at its start for links of these names.

        Returns the keys that a running link cannot take, such as models, by link. Raises UsageError,
        ScenarioError.
        """
        changes = link_command.of_scenario(requests.scenario_of(scenario), self.proxies)
        for name, (change, _) in changes.items():
            self.link(name).set(**change)
        return {name: left for name, (_, left) in changes.items()}

    def restore(self) -> list[str]:
        """Sets the lab back to the scenario's start: links, events and models begin anew, changes
        end, queues are empty, and all connections over the links end.

        Returns what the lab cannot set back, in words. Raises UsageError if it has ended.
        """
        try:
            answer = link_command.answer_to(
                self._address, Command(restore=True), self._process.token
            )
        except RuntimeError as error:
            raise UsageError(str(error)) from error
        return list(answer["stays"])

    def send(self, command: Command) -> None:
        """Sends a command. Raises RuntimeError if the lab refuses it or has ended."""
        link_command.send(self._address, command, self._process.token)

    @property
    def links(self) -> dict[str, CarriedBytes]:
        """What each link has carried until now. Waits for a sample, about a second. Raises
        RuntimeError."""
        now = self._asked("/status?sampled")["now"]["links"]
        return {
            name: CarriedBytes(one["bytes"]["down"], one["bytes"]["up"])
            for name, one in now.items()
        }

    def status(self) -> dict[str, Any]:
        """Returns what the lab says of itself by `GET /status`. Raises RuntimeError if it has
        ended."""
        return self._asked("/status")

    def _asked(self, path: str) -> dict[str, Any]:
        try:
            answer = dict(json.loads(link_command.exchanged(self._address, "GET", path)[0]))
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise RuntimeError(f"the lab does not answer: {error}") from error
        if "error" in answer:
            raise RuntimeError(f"the lab: {link_command.sentence(answer)}")
        return answer


@contextlib.contextmanager
def live(
    scenario: StrPath | None = None,
    *,
    links: Mapping[str, str] | None = None,
    origin: str | Sequence[str] = (),
    outside: bool = False,
    seed: int = 1,
    place: str = "auto",
    out: StrPath = RUNS,
    timeout: float = START_S,
    progress: Tell = silent,
) -> Iterator[OpenLab]:
    """Opens a lab whose links other programs use, as `linklab live --listen-proxy` does.

    Args:
        scenario: a name of `linklab scenarios`, or a YAML file.
        links: links in place of a scenario, as for `linklab.run`.
        origin: URLs of your servers that are put behind the links.
        outside: whether the lab reaches everything that this machine reaches, by TCP and UDP.
        seed: the seed of everything random.
        place: `auto`, `guest` or `host`.
        out: the parent of run directories.
        timeout: seconds for the lab to start.
        progress: a function that is called with every `Progress`.

    Raises LinklabError if there can be no such lab, LiveLabError if it does not start. It ends with
    the block, and with the thread that opened it.
    """
    requests.scenario_of(scenario, links)
    RunOptions(seed=seed)
    Settings(place=place, timeout=timeout)
    where = session.choose_place(place)
    environment.prepare(where, progress)
    words = [
        *("--place", where.name, "--seed", str(seed), f"--out={out}"),
        *("--listen-proxy", "0", "--listen", "127.0.0.1:0"),
        *(f"--origin={one}" for one in ([origin] if isinstance(origin, str) else origin)),
        *(["--outside"] if outside else []),
        *(f"--link={name}={line}" for name, line in (links or {}).items()),
        *(() if links else ("--", str(scenario))),  # Without the dashes, --open were an option.
    ]
    require_no_nul(words)
    with lab_process(words) as process:
        yield process.wait(lambda: _ready(process), timeout)


def _ready(process: LabProcess) -> OpenLab | None:
    """Returns the lab once it is running.

    Only the lab itself says its addresses, and it listens on them as long as it lives.
    """
    said = process.addresses()
    if said is None:
        return None
    address = parse(said["address"])
    urls = dict(said["proxies"])
    metrics = f"http://localhost:{address[1]}/metrics"
    lab = OpenLab(urls.pop(""), urls, tuple(said["origins"]), metrics, address, process)
    with contextlib.suppress(RuntimeError):
        return lab if lab._asked("/lab")["state"] == "running" else None
    return None
