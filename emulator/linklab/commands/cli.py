"""The command line: `linklab COMMAND`. Parses, calls, prints; decides nothing itself.

Exit codes: 0 success, 1 a run failed, 2 the request cannot be carried out as given.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

import linklab
from linklab.commands import import_trace
from linklab.commands import plot as plotcommand
from linklab.core.complaint import complain
from linklab.core.paths import PROFILES
from linklab.core.printable import printable
from linklab.lab.control import Command
from linklab.live import address, link_command
from linklab.report import reproduction
from linklab.runs import clients
from linklab.runs.job import require_no_credentials
from linklab.scenario import Scenario, ScenarioError
from linklab.traces.trace import TraceError

RUNS = Path("runs")
DEFAULT_SUITE = PROFILES / "regression" / "default.yaml"

_EXAMPLES = """\
examples:
  linklab compare static-80-50                 six approaches, one table
  linklab run hs-s7 -a alg3 --json             one run, figures for machines
  linklab exec static-80-50 -- curl -o {output} --interface wlan0 {url}
  linklab live -a alg3,alg1                    downloads for ever, to be watched
  linklab doctor                               what works on this machine
"""


class UsageError(ValueError):
    """A request that cannot be carried out as given."""


class _Version(argparse.Action):
    """`--version`, which asks git and so is not to be known before it is wanted."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str) -> None:
        super().__init__(option_strings, dest=argparse.SUPPRESS, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(f"linklab {linklab.__version__}")
        parser.exit()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="linklab",
        description="A testbed for multi-link HTTP over emulated LTE and Wi-Fi links.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, help="say which linklab this is")
    commands = parser.add_subparsers(dest="name", required=True, metavar="COMMAND")

    def command(name: str, summary: str, epilog: str = "") -> argparse.ArgumentParser:
        return commands.add_parser(
            name, help=summary, description=summary[0].upper() + summary[1:] + ".",
            epilog=epilog, formatter_class=argparse.RawDescriptionHelpFormatter,
        )  # fmt: skip

    run = command(
        "run", "run one algorithm in one scenario", "example:\n  linklab run hs-s7 -a alg3"
    )
    _run_options(run)
    run.add_argument("scenario", help="a name from `linklab scenarios`, or a YAML file")
    run.add_argument(
        "-a", "--algorithm", default="alg3", metavar="NAME",
        help=f"{', '.join(clients.CONTESTANTS)} (default alg3)",
    )  # fmt: skip

    compare = command(
        "compare", "run several algorithms in the same scenarios, side by side",
        "examples:\n  linklab compare hs-s7 hs-s6\n"
        "  linklab compare static-80-50 -a alg3,mptcp,aria2-8 --runs 3",
    )  # fmt: skip
    _run_options(compare)
    compare.add_argument("scenarios", nargs="+", metavar="scenario")
    compare.add_argument(
        "-a", "--algorithms", default=",".join(clients.ALGORITHMS), metavar="NAMES",
        help=f"comma-separated; `peers` adds {', '.join(clients.PEERS)}",
    )  # fmt: skip
    compare.add_argument(
        "--runs", type=_positive, default=1, metavar="N",
        help="runs of each with seeds SEED…SEED+N-1; the table shows medians (default 1)",
    )  # fmt: skip
    compare.add_argument(
        "--parallel", type=_positive, metavar="N",
        help="guests at a time, each on a core of its own (default: all; 1 on the real clock)",
    )  # fmt: skip

    reproduce = command(
        "reproduce", "run a publication's experiments and set its figures beside the measured ones",
        "example:\n  linklab reproduce thesis --runs 5      half as many as the thesis made",
    )  # fmt: skip
    _run_options(reproduce)
    reproduce.add_argument("publication", choices=tuple(reproduction.PUBLICATIONS))
    reproduce.add_argument(
        "--runs", type=_positive, default=10, metavar="N",
        help="runs of each with seeds SEED…SEED+N-1, of which the median counts (default 10)",
    )  # fmt: skip
    reproduce.add_argument("--parallel", type=_positive, metavar="N", help="as for compare")

    regress = command(
        "regress", "run a suite of downloads and compare them with its baseline",
        "Exit codes: 0 as the baseline or better, 1 something is worse, 2 it could not be told.\n"
        "LINKLAB_MULTILINK names another build of multilink.\n\nexamples:\n"
        "  linklab regress --junit regress.xml --markdown regress.md\n"
        "  linklab regress --update --reason 'alg3 asks for less at the end'\n"
        "  linklab regress my-suite.yaml --real-clock",
    )  # fmt: skip
    _regress_options(regress)

    campaign = command(
        "campaign", "run a matrix of scenarios, algorithms and seeds, on several machines too",
        "What is whole in --out is not run again: after Ctrl-C call it once more.\n\nexamples:\n"
        "  linklab campaign profiles/campaigns/thesis.yaml\n"
        "  linklab campaign mine.yaml --jobs 2\n\n"
        "On several machines, by TLS; tls.key, which is for all of them, is what lets in:\n"
        "  openssl req -x509 -newkey rsa:2048 -noenc -days 365 -subj /CN=campaign \\\n"
        "    -keyout tls.key -out tls.pem\n"
        "  tls='--tls-ca-file tls.pem --tls-cert tls.pem --tls-key tls.key'\n"
        "  export DASK_TEMPORARY_DIRECTORY=$(mktemp -d)\n"
        "  dask scheduler $tls --protocol tls --host 192.0.2.7 --port 8786 \\\n"
        "    --dashboard-address 127.0.0.1:0 &\n"
        "  dask worker $tls --host 192.0.2.7 --dashboard-address 127.0.0.1:0 \\\n"
        "    --nthreads 1 --nworkers 2 tls://192.0.2.7:8786 &\n"
        "  linklab campaign mine.yaml --scheduler tls://192.0.2.7:8786 \\\n"
        "    --tls-ca tls.pem --tls-cert tls.pem --tls-key tls.key\n\n"
        "Whoever reaches a Dask scheduler or worker without TLS can run programs as its user:\n"
        "tcp:// is taken on the loopback only, where that is every user of the machine.",
    )  # fmt: skip
    _campaign_options(campaign)

    execute = command(
        "exec", "run any program in the client's place",
        "The program finds LINKLAB_URL, LINKLAB_CA, LINKLAB_OUTPUT and LINKLAB_SHA256 in its\n"
        "environment (SSL_CERT_FILE and CURL_CA_BUNDLE too); {url}, {ca} and {output} in its\n"
        "arguments are filled in. Both links are devices: wlan0 and rmnet0. Where one has a radio,\n"
        "LINKLAB_WIRELESS names a file with its signal strength, as in /proc/net/wireless.\n"
        "run.json keeps the command: no URL in it may hold a user or password.\n\n"
        "example:\n  linklab exec static-80-50 -- aria2c --ca-certificate={ca} \\\n"
        "    --multiple-interface=wlan0,rmnet0 -s2 -x2 -k1M -d /tmp {url}",
    )  # fmt: skip
    _run_options(execute)
    execute.add_argument("scenario")
    execute.usage = "linklab exec [options] SCENARIO -- COMMAND…"

    live = command(
        "live", "keep downloading in real time, to be watched and changed",
        "It serves metrics for Prometheus. In a second terminal:\n"
        "  linklab link wifi down --for 3s\n  linklab link lte rate 10mbit\n  linklab next\n\n"
        "Commands need the lab's token. Those of the same account find it; from other accounts and\n"
        "machines (--listen): LINKLAB_LIVE_TOKEN=… linklab next --live ADDRESS. Whoever reaches the\n"
        "address may read metrics and status. It is plain HTTP: use a tunnel over networks that\n"
        "you do not trust.\n\n"
        "example:\n  linklab live live -a alg3,alg1",
    )  # fmt: skip
    live.add_argument("scenario", nargs="?", default="live", help="(default live)")
    live.add_argument(
        "-a", "--algorithms", default="alg3", metavar="NAMES",
        help="comma-separated, one run after the other (default alg3)",
    )  # fmt: skip
    live.add_argument("--seed", type=_seed, default=1, help="of the first turn (default 1)")
    live.add_argument("--place", choices=("auto", "host", "guest"), default="auto")
    live.add_argument("--out", type=Path, default=RUNS, metavar="DIR", help="(default runs/)")
    _address_option(live, "--listen", "where to serve metrics and take commands")
    live.add_argument("--dashboards", metavar="URL", help="what to open, for the log")

    link = command("link", "change a link of the live lab", _link_help())
    link.add_argument("link", help="wifi or lte")
    link.add_argument("change", choices=tuple(link_command.CHANGES), metavar="CHANGE")
    link.add_argument("value", nargs="?", metavar="VALUE")
    link.add_argument(
        "--for", dest="duration", metavar="DURATION", help="such as 3s; else for good"
    )
    _address_option(link, "--live", "the live lab's address")
    following = command("next", "let the live lab go on to its next algorithm")
    _address_option(following, "--live", "the live lab's address")

    publish = command(
        "publish", "put finished runs into Prometheus, each in a slot of its own in the past",
        "Prometheus shows new blocks of its data within a minute.\n\nexamples:\n"
        "  linklab publish runs/*-compare/* --prometheus-data /var/lib/prometheus/metrics2\n"
        "  linklab publish runs/*-compare/* --output runs.om",
    )  # fmt: skip
    publish.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="a run directory")
    target = publish.add_mutually_exclusive_group(required=True)
    target.add_argument(
        "--prometheus-data", type=Path, metavar="DIR", help="Prometheus' data directory"
    )
    target.add_argument(
        "--output", type=Path, metavar="FILE",
        help="OpenMetrics text, for `promtool tsdb create-blocks-from openmetrics FILE DIR`",
    )  # fmt: skip
    publish.add_argument(
        "--retention", type=_positive, default=15, metavar="DAYS",
        help="how long that Prometheus keeps data (default 15)",
    )  # fmt: skip
    _json_option(publish)

    plot = command(
        "plot", "draw what a scenario's links can carry, or what a run's did", plotcommand.EPILOG
    )  # fmt: skip
    plot.add_argument("--seed", type=_seed, default=1, help="of everything random (default 1)")
    plotcommand.add_options(plot)

    importing = command(
        "import", "make a trace of a recording: Mahimahi, CellReplay, UCC 4G/5G, iperf3, CSV",
        import_trace.EPILOG,
    )  # fmt: skip
    import_trace.add_options(importing)

    validate = command("validate", "check scenario files")
    validate.add_argument("files", nargs="+", metavar="FILE")
    _json_option(validate)

    scenarios = command(
        "scenarios", "list the scenarios that are at hand, or tell about some of them",
        "examples:\n  linklab scenarios\n  linklab scenarios emptcp-on-off",
    )  # fmt: skip
    scenarios.add_argument("names", nargs="*", metavar="SCENARIO", help="which; else all, in short")
    scenarios.add_argument(
        "--oracle", action="store_true",
        help="how fast each could be at best, which takes a while for all",
    )  # fmt: skip
    _json_option(scenarios)

    doctor = command("doctor", "say what works on this machine and what does not")
    _json_option(doctor)

    clean = command("clean", "remove what linklab made on this machine outside run directories")
    clean.add_argument("--cache", action="store_true", help="the kernel, payloads and keys too")
    return parser


def _regress_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "suite", nargs="?", type=Path, default=DEFAULT_SUITE, metavar="SUITE",
        help="a suite file (default profiles/regression/default.yaml)",
    )  # fmt: skip
    parser.add_argument(
        "--baseline", type=Path, metavar="FILE", help="(default: what the suite names)"
    )
    parser.add_argument(
        "--update", action="store_true", help="make this run's figures the baseline"
    )
    parser.add_argument("--reason", metavar="TEXT", help="why, with --update; kept in the baseline")
    parser.add_argument(
        "--jobs", type=_positive, metavar="N",
        help="guests at a time, each on a core of its own (default: all)",
    )  # fmt: skip
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML there")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write a summary there")
    parser.add_argument(
        "--real-clock", action="store_true",
        help="instead: processor time and memory of the suite's `cost`, beside curl's",
    )  # fmt: skip
    parser.add_argument(
        "--out", type=Path, default=RUNS, metavar="DIR", help="parent of run directories (runs/)"
    )
    parser.add_argument(
        "--timeout", type=_seconds, metavar="S",
        help="wall-clock seconds after which a run counts as hung",
    )  # fmt: skip
    parser.add_argument(
        "--shift", type=_seconds, default=0.0, metavar="S",
        help="start every client later by S seconds, to see how much hangs on it",
    )  # fmt: skip
    _json_option(parser)


def _campaign_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="a campaign's YAML file")
    workers = parser.add_mutually_exclusive_group()
    workers.add_argument(
        "--scheduler", metavar="ADDRESS",
        help="of a Dask cluster, such as tls://192.0.2.7:8786 (default: workers on this machine)",
    )  # fmt: skip
    workers.add_argument(
        "--jobs", type=_positive, metavar="N",
        help="workers on this machine, each on a core of its own (default: all)",
    )  # fmt: skip
    for name, what in (
        ("ca", "whom of a tls:// cluster to trust"), ("cert", "who this is"), ("key", "its key"),
    ):  # fmt: skip
        parser.add_argument(
            f"--tls-{name}",
            type=Path,
            metavar="FILE",
            help=f"{what}, in PEM (or as Dask is set up)",
        )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="for run directories (runs/campaign-NAME)"
    )
    parser.add_argument(
        "--timeout", type=_seconds, metavar="S",
        help="wall-clock seconds after which a run counts as hung",
    )  # fmt: skip
    _json_option(parser)


def _run_options(parser: argparse.ArgumentParser) -> None:
    from linklab.places.choice import CLOCKS, PLACES

    parser.add_argument("--seed", type=_seed, default=1, help="of everything random (default 1)")
    parser.add_argument("--place", choices=PLACES, default="auto")
    parser.add_argument("--clock", choices=CLOCKS, default="auto")
    parser.add_argument(
        "--out", type=Path, default=RUNS, metavar="DIR", help="parent of run directories (runs/)"
    )
    parser.add_argument(
        "--timeout", type=_seconds, metavar="S",
        help="wall-clock seconds after which a run counts as hung",
    )  # fmt: skip
    parser.add_argument(
        "--shift", type=_seconds, default=0.0, metavar="S",
        help="start the client later by S seconds",
    )  # fmt: skip
    _json_option(parser)


def _address_option(parser: argparse.ArgumentParser, name: str, summary: str) -> None:
    parser.add_argument(
        name, dest="address", type=_address, default=link_command.DEFAULT_ADDRESS,
        metavar="ADDRESS", help=f"{summary} (default 127.0.0.1:9464)",
    )  # fmt: skip


def _address(text: str) -> tuple[str, int]:
    try:
        return address.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _link_help() -> str:
    changes = "\n".join(f"  {name:<10} {what}" for name, what in link_command.CHANGES.items())
    return f"CHANGE is one of\n{changes}\n\nexample:\n  linklab link lte rate 10mbit --for 5s"


def _json_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON for machines")


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    """What stands before and after the first `--` of `exec`, which starts a user's own command."""
    if words[:1] != ["exec"] or "--" not in words:
        return words, []
    at = words.index("--")
    return words[:at], words[at + 1 :]


def _positive(text: str) -> int:
    value = _integer(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 1")
    return value


def _seed(text: str) -> int:
    value = _integer(text)
    if not 0 <= value < 2**63:
        raise argparse.ArgumentTypeError(f"{text!r} is not a seed; allowed: 0 to 2^63-1")
    return value


def _integer(text: str) -> int:
    """The integer, or -1, which no option allows."""
    try:
        return int(text)
    except ValueError:
        return -1


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return value


def _contestants(names: str) -> list[str]:
    """The names in a comma-separated list, `peers` expanded; UsageError for unknown ones."""
    chosen: list[str] = []
    for name in (part.strip() for part in names.split(",")):
        chosen += clients.PEERS if name == "peers" else [name]
    try:
        return list(dict.fromkeys(clients.named(name) for name in chosen))
    except ValueError as error:
        raise UsageError(str(error)) from None


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command line; returns the exit code."""
    words, command = _split(sys.argv[1:] if arguments is None else list(arguments))
    options = _parser().parse_args(words)
    options.command = command
    signal.signal(signal.SIGTERM, _terminate)
    try:
        return int(_COMMANDS[options.name](options))
    except (ScenarioError, UsageError) as error:
        complain(error)
        return 2
    except KeyboardInterrupt:
        print("linklab: interrupted; everything that was started has been ended", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (OSError, RuntimeError) as error:
        complain(error)
        return 2


def _terminate(_: int, __: FrameType | None) -> None:
    raise KeyboardInterrupt


def _plot(options: argparse.Namespace) -> int:
    try:
        return plotcommand.run(options)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _import(options: argparse.Namespace) -> int:
    try:
        return import_trace.run(options)
    except TraceError as error:
        raise UsageError(str(error)) from error


def _validate(options: argparse.Namespace) -> int:
    from linklab import scenario

    results = []
    for file in options.files:
        try:
            scenario.find(file)
            results.append({"file": file, "valid": True, "error": None})
        except ScenarioError as error:
            results.append({"file": file, "valid": False, "error": str(error)})
    if options.json:
        print(json.dumps(results, indent=2))
    else:
        for result in results:
            print(printable(result["error"] or f"{result['file']}: valid"))
    return 0 if all(result["valid"] for result in results) else 2


def _scenarios(options: argparse.Namespace) -> int:
    from linklab import scenario
    from linklab.report import listing

    names = list(dict.fromkeys(options.names))
    chosen = [scenario.find(name) for name in names] or scenario.list_all()
    times = _oracles(chosen) if options.oracle or (names and options.json) else None
    if options.json:
        print(json.dumps(listing.to_json(chosen, times), indent=2, allow_nan=False))
    elif names:
        print("\n\n".join(listing.details(one) for one in chosen))
    else:
        print(listing.overview(chosen, times))
    return 0


def _oracles(chosen: list[Scenario]) -> dict[str, float]:
    """Their oracle times, with a bar on a terminal: all that ship take some seconds."""
    from linklab.core.progress import progress
    from linklab.report import listing

    with progress() as bar:
        task = bar.add_task("oracle", total=len(chosen))
        return listing.oracles(chosen, lambda done: bar.update(task, completed=done))


def _doctor(options: argparse.Namespace) -> int:
    from linklab.commands import doctor

    return doctor.report(as_json=options.json)


def _clean(options: argparse.Namespace) -> int:
    from linklab.core import scratch

    for line in scratch.remove(cache=options.cache):
        print(line)
    return 0


def _run(options: argparse.Namespace) -> int:
    from linklab.commands import compare as comparing

    chosen = _contestants(options.algorithm)
    if len(chosen) != 1:
        raise UsageError(f"run takes one algorithm, not {', '.join(chosen)}: use compare")
    return comparing.run(options, chosen[0])


def _compare(options: argparse.Namespace) -> int:
    from linklab.commands import compare as comparing

    return comparing.compare(options, _contestants(options.algorithms))


def _regress(options: argparse.Namespace) -> int:
    from linklab.commands import regress as command

    if options.update and not (options.reason or "").strip():
        raise UsageError("--update needs --reason TEXT: why these figures are right now")
    if options.reason and not options.update:
        raise UsageError("--reason goes with --update")
    virtual_only = [name for name in ("update", "baseline") if getattr(options, name)]
    if options.real_clock and virtual_only:
        raise UsageError(f"--real-clock has no baseline: leave out --{virtual_only[0]}")
    return command.run(options)


def _campaign(options: argparse.Namespace) -> int:
    from linklab.commands import campaign as command

    given = [name for name in ("tls_ca", "tls_cert", "tls_key") if getattr(options, name)]
    if given and (len(given) != 3 or not options.scheduler):
        raise UsageError("--tls-ca, --tls-cert and --tls-key go together, and with --scheduler")
    return command.run(options)


def _reproduce(options: argparse.Namespace) -> int:
    from linklab.commands import compare as comparing

    return comparing.reproduce(options)


def _live(options: argparse.Namespace) -> int:
    from linklab.commands import compare as comparing

    return comparing.live(options, _contestants(options.algorithms))


def _link(options: argparse.Namespace) -> int:
    try:
        command = link_command.command_of(
            options.link, options.change, options.value, options.duration
        )
    except ValueError as error:
        raise UsageError(str(error)) from None
    print(link_command.send(options.address, command))
    return 0


def _next(options: argparse.Namespace) -> int:
    print(link_command.send(options.address, Command(next=True)))
    return 0


def _publish(options: argparse.Namespace) -> int:
    from linklab.publish import prometheus

    done = prometheus.publish(
        options.runs, data=options.prometheus_data, output=options.output,
        retention_s=options.retention * 86400,
    )  # fmt: skip
    if options.json:
        print(json.dumps([prometheus.to_json(one) for one in done], indent=2))
        return 0
    for one in done:
        print(printable(prometheus.in_words(one)))
    return 0


def _exec(options: argparse.Namespace) -> int:
    from linklab.commands import compare as comparing

    if not options.command:
        raise UsageError("exec needs a command: linklab exec SCENARIO -- COMMAND…")
    try:
        require_no_credentials(options.command)
    except ValueError as error:
        raise UsageError(str(error)) from error
    return comparing.execute(options, tuple(options.command))


_COMMANDS = {
    "run": _run,
    "compare": _compare,
    "regress": _regress,
    "campaign": _campaign,
    "reproduce": _reproduce,
    "exec": _exec,
    "live": _live,
    "link": _link,
    "next": _next,
    "publish": _publish,
    "plot": _plot,
    "import": _import,
    "validate": _validate,
    "scenarios": _scenarios,
    "doctor": _doctor,
    "clean": _clean,
}
