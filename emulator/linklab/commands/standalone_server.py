"""Runs the server alone for tests on hardware: H2O with payloads on an address that phones reach.

The image of `server/Dockerfile` runs `python -m linklab.commands.standalone_server` (compose.yaml,
profile `field`). The program makes the payloads and a certificate for the address, and copies the
authority's certificate to where clients can fetch it. Then H2O replaces the program.
"""

from __future__ import annotations

import ipaddress
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

from linklab.core.paths import in_cache
from linklab.core.scratch import scratch_prefix
from linklab.lab.programs import authority, payload
from linklab.lab.programs.authority import AuthorityError
from linklab.lab.programs.h2o import configuration
from linklab.lab.programs.payload import PayloadError
from linklab.scenario import Payload

PORT = 8443
SIZES_BYTES = (10_000_000, 100_000_000, 250_000_000)
"""A quick test, the size that peers were measured with, and the thesis' file."""

_DNS_NAME = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})*")


def address_of(text: str) -> str:
    """Checks the server's public address, an IP address or a DNS name. Raises ValueError."""
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        if _DNS_NAME.fullmatch(text) and not text.replace(".", "").isdigit():
            return text
    given = f"{text!r} is none" if text else "it is not set"
    raise ValueError(
        f"LINKLAB_FIELD_ADDRESS must be the address of this machine that clients reach ({given}); "
        "allowed: an IP address or a DNS name"
    )


def prepare(address: str, work: Path) -> Path:
    """Makes H2O's payloads and its configuration in `work`. Returns the configuration."""
    made = authority.ensure(in_cache("authority"), (address, "localhost", "127.0.0.1"))
    for size_bytes in SIZES_BYTES:
        payload.ensure(Payload(size_bytes), in_cache("payloads"))
    shutil.copy(made.ca_cert, in_cache("ca.pem"))
    conf = work / "h2o.conf"
    conf.write_text(
        configuration(
            ("0.0.0.0", PORT),
            made.cert,
            made.key,
            in_cache("payloads"),
            access_log=Path("|cat"),
            error_log=work / "h2o-error.log",
        )
    )
    return conf


def main() -> None:
    """Replaces this process by H2O. Raises SystemExit with one line of error if that fails."""
    try:
        address = address_of(os.environ.get("LINKLAB_FIELD_ADDRESS", ""))
    except ValueError as error:
        sys.exit(f"linklab: {error}")
    try:
        conf = prepare(address, Path(tempfile.mkdtemp(prefix=scratch_prefix("field"))))
    except (AuthorityError, PayloadError, OSError) as error:
        sys.exit(f"linklab: {error}")
    shown = f"[{address}]" if ":" in address else address
    for size_bytes in SIZES_BYTES:
        print(f"https://{shown}:{PORT}/payload-{size_bytes}-1.bin")
    ca = in_cache("ca.pem")
    print(f"clients need {ca}: docker compose cp server:{ca} .", flush=True)
    os.execvp("h2o", ["h2o", "-m", "worker", "-c", str(conf)])


if __name__ == "__main__":
    main()
