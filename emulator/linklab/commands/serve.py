"""Implements `linklab serve`: an HTTP API that starts a lab, changes its links and stops it."""

from __future__ import annotations

import argparse

from linklab.commands.options import add, add_live_address
from linklab.places.names import PLACES

DEFAULT = ("127.0.0.1", 9465)

EPILOG = """\
Programs in any language start a lab, change its links, read its state and stop
it. There is one lab at a time, on the real clock. GET /openapi.json describes
the API. A program downloads over the links by the lab's proxies. Metrics and
page are those of `linklab live`, which has the same API but begins with a lab.

What changes the lab needs the token, in the header X-Linklab. Set
LINKLAB_LIVE_TOKEN, or read the file that the command names. It is plain HTTP:
use a tunnel over networks that you do not trust. Whoever has the token can have
the server read scenario files and connect to origins.

examples:
  linklab serve
  linklab serve --listen 0.0.0.0:9465 --listen-proxy 0.0.0.0:8080"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--place", choices=PLACES, default="auto")
    add(parser, "--listen-proxy", more="(default: free ports of the loopback device)")
    add(parser, "--out", help="(default runs/)")
    add_live_address(parser, "--listen", "where to serve the API", DEFAULT)


def run(options: argparse.Namespace) -> int:
    """Serves the API until it is interrupted."""
    from linklab.commands import live  # YAML is slow to load.
    from linklab.realtime import start

    start.serve(
        lambda asked, go_on: live.opened(live.asked_for(asked, options), go_on), options.address
    )
    return 0
