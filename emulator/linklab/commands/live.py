"""Implements `linklab live`: downloads in real time, one after the other, to watch and to change."""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from linklab.api import environment, requests
from linklab.api.progress import Progress
from linklab.api.requests import clients_of, require_no_nul
from linklab.commands import running
from linklab.commands.options import (
    LINKS,
    OUTSIDE,
    UsageError,
    add,
    add_live_address,
    outside,
    scenario_of,
)
from linklab.places.names import PLACES
from linklab.realtime import session, start
from linklab.realtime.messages import StartLab
from linklab.realtime.one_lab import Opened
from linklab.realtime.recorder import Recorder, RecordFileError
from linklab.realtime.session import LiveLab
from linklab.realtime.start import Outlets
from linklab.runs import runner
from linklab.scenario import ScenarioError

EPILOG = """\
The command serves a page to watch and change the links in a browser (--open).
It also serves metrics for Prometheus, and the HTTP API of `linklab serve`.
In a second terminal:
  linklab link wifi carrier down --for 3s
  linklab link lte --as fast-4g
  linklab next

What you change by hand becomes a scenario: --record FILE.yaml, or the page's
button. It runs in virtual time, the same to the nanosecond.

Commands need the lab's token. Commands of the same account find it. From other
accounts and machines (--listen): LINKLAB_LIVE_TOKEN=… linklab next --live
ADDRESS. Anyone who reaches the address may read metrics, status and page. It is
plain HTTP: use a tunnel over networks that you do not trust.

With --listen-proxy the links carry only the proxy's traffic, unless -a names
algorithms that download too. If several take turns, connections wait for the
next one to begin. --origin and --outside say where the proxy leads.

A program that starts a lab lets it choose ports, which nobody can take first:
--listen 127.0.0.1:0 --listen-proxy 0 --addresses-fd N. The line has the keys
address, proxies and origins. Or it has refused: why there can be no such lab.

examples:
  linklab live live -a alg3,alg1
  linklab live --link wifi=hotel-wifi --link lte=fast-4g
  linklab live wifi-gone --listen-proxy 8080 --origin http://localhost:3000/"""

_IN_TURN = "alg3,alg2,alg1,naive"
"""Several, so that `linklab next` has one to go on to."""

_FREE_PORTS = ("127.0.0.1", 0)
"""Where the proxies of a lab listen that a request asks for."""


def add_options(parser: argparse.ArgumentParser) -> None:
    add(parser, *LINKS)
    parser.add_argument("scenario", nargs="?", help="(default live)")
    parser.add_argument(
        "-a",
        "--algorithms",
        metavar="NAMES",
        help=f"comma-separated, one run after the other (default {_IN_TURN}; with --listen-proxy "
        "none)",
    )
    add(parser, "--seed", help="of the first turn (default 1)")
    parser.add_argument("--place", choices=PLACES, default="auto")
    add(parser, *OUTSIDE)
    add(parser, "--listen-proxy", more="(real clock)")
    add(parser, "--out", help="(default runs/)")
    add_live_address(parser, "--listen", "where to serve metrics and take commands")
    parser.add_argument(
        "--record",
        type=Path,
        metavar="FILE.yaml",
        help="write what you change by hand as a scenario, which runs in virtual time too",
    )
    parser.add_argument(
        "--page",
        choices=("on", "off"),
        default="on",
        help="a page at / to watch and change the links in a browser (default on)",
    )
    parser.add_argument("--open", action="store_true", help="open the page in a browser")
    parser.add_argument(
        "--addresses-fd",
        type=int,
        metavar="N",
        help="write the lab's addresses as a line of JSON to the inherited descriptor N",
    )
    parser.add_argument("--dashboards", metavar="URL", help="the dashboards' address, for the log")


def run(options: argparse.Namespace) -> int:
    """Runs a live lab until it is interrupted."""
    try:
        return _run(options)
    except (UsageError, ScenarioError) as error:
        if options.addresses_fd is not None:
            start.tell(options.addresses_fd, {"refused": str(error)})
        raise


def _run(options: argparse.Namespace) -> int:
    if (options.origin or options.outside) and options.listen_proxy is None:
        raise UsageError(
            "--origin and --outside need --listen-proxy: what downloads in a live lab by itself "
            "asks the lab's own server"
        )
    if options.open and options.page == "off":
        raise UsageError("--open opens the page: it does not go with --page off")
    named = options.scenario or (None if options.link else "live")
    scenario = options.scenario = scenario_of(options, named)
    default = _IN_TURN if options.listen_proxy is None else None
    wanted = default if options.algorithms is None else options.algorithms
    names = [] if wanted is None else clients_of(wanted, scenario)
    environment.require(names, options.place)
    try:
        recorder = None if options.record is None else Recorder(scenario, options.record)
    except RecordFileError as error:
        raise UsageError(f"--record: {error}") from None
    first = StartLab(named or scenario.name, options.origin, options.outside, options.seed)

    def open_lab(asked: StartLab, go_on: Callable[[], None]) -> AbstractContextManager[Opened]:
        if asked is first:
            return opened(options, go_on, names, recorder)
        return opened(asked_for(asked, options), go_on)

    outlets = Outlets(
        address=options.address,
        page=options.page == "on",
        open=options.open,
        dashboards=options.dashboards,
        recorder=recorder,
        addresses_fd=options.addresses_fd,
    )
    start.live(open_lab, first, outlets)
    return 0


def asked_for(asked: StartLab, options: argparse.Namespace) -> argparse.Namespace:
    """Returns the options of a lab that a request asks for, at the place of the server's `options`."""
    require_no_nul((asked.scenario, *asked.origins))
    proxy = options.listen_proxy or _FREE_PORTS
    return argparse.Namespace(
        **{**vars(options), "listen_proxy": proxy, "origin": asked.origins}
        | {name: getattr(asked, name) for name in ("scenario", "outside", "seed")}
    )


@contextlib.contextmanager
def opened(
    options: argparse.Namespace,
    go_on: Callable[[], None],
    names: Sequence[str] = (),
    recorder: Recorder | None = None,
) -> Iterator[Opened]:
    """Opens a lab, in which the clients with these names download. Raises LinklabError.

    `go_on` is called all the time. What it raises breaks off the start.
    """
    scenario = requests.scenario_of(options.scenario)
    where = session.choose_place(options.place)
    with running.shown() as shown:

        def tell(progress: Progress) -> None:
            go_on()
            shown(progress)

        environment.prepare(where, tell)
    with outside(options, scenario, where.name, go_on) as reach:
        turn = session.requests(scenario, names, options.seed, reach)
        with contextlib.closing(LiveLab(turn, where, recorder)) as lab:
            yield lab, runner.new_directory(options.out, time.strftime("%Y%m%d-%H%M%S-live"))
