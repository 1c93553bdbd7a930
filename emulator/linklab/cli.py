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
from linklab import contestants
from linklab.scenario import ScenarioError

RUNS = Path("runs")

_EXAMPLES = """\
examples:
  linklab compare static-80-50                 six approaches, one table
  linklab run hs-s7 -a alg3 --json             one run, figures for machines
  linklab exec static-80-50 -- curl -o {output} --interface wlan0 {url}
  linklab doctor                               what works on this machine
"""


class UsageError(ValueError):
    """A request that cannot be carried out as given."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="linklab",
        description="A testbed for multi-link HTTP over emulated LTE and Wi-Fi links.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"linklab {linklab.__version__}")
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
        help=f"{', '.join(contestants.CONTESTANTS)} (default alg3)",
    )  # fmt: skip

    compare = command(
        "compare", "run several algorithms in the same scenarios, side by side",
        "examples:\n  linklab compare hs-s7 hs-s6\n"
        "  linklab compare static-80-50 -a alg3,mptcp,aria2-8 --runs 3",
    )  # fmt: skip
    _run_options(compare)
    compare.add_argument("scenarios", nargs="+", metavar="scenario")
    compare.add_argument(
        "-a", "--algorithms", default=",".join(contestants.ALGORITHMS), metavar="NAMES",
        help=f"comma-separated; `peers` adds {', '.join(contestants.PEERS)}",
    )  # fmt: skip
    compare.add_argument(
        "--runs", type=_positive, default=1, metavar="N",
        help="runs of each with seeds SEED…SEED+N-1; the table shows medians (default 1)",
    )  # fmt: skip
    compare.add_argument(
        "--parallel", type=_positive, metavar="N",
        help="guests at a time, each on a core of its own (default: all; 1 on the real clock)",
    )  # fmt: skip

    execute = command(
        "exec", "run any program in the client's place",
        "The program finds LINKLAB_URL, LINKLAB_CA, LINKLAB_OUTPUT and LINKLAB_SHA256 in its\n"
        "environment (SSL_CERT_FILE and CURL_CA_BUNDLE too); {url}, {ca} and {output} in its\n"
        "arguments are filled in. Both links are devices: wlan0 and rmnet0.\n\n"
        "example:\n  linklab exec static-80-50 -- aria2c --ca-certificate={ca} \\\n"
        "    --multiple-interface=wlan0,rmnet0 -s2 -x2 -k1M -d /tmp {url}",
    )  # fmt: skip
    _run_options(execute)
    execute.add_argument("scenario")
    execute.usage = "linklab exec [options] SCENARIO -- COMMAND…"

    validate = command("validate", "check scenario files")
    validate.add_argument("files", nargs="+", metavar="FILE")
    _json_option(validate)

    scenarios = command("scenarios", "list the scenarios that are at hand")
    _json_option(scenarios)

    doctor = command("doctor", "say what works on this machine and what does not")
    _json_option(doctor)

    clean = command("clean", "remove what linklab made on this machine outside run directories")
    clean.add_argument("--cache", action="store_true", help="the kernel, payloads and keys too")
    return parser


def _run_options(parser: argparse.ArgumentParser) -> None:
    from linklab.place import CLOCKS, PLACES

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
        chosen += contestants.PEERS if name == "peers" else [name]
    for name in chosen:
        if name not in contestants.CONTESTANTS:
            raise UsageError(
                f"no algorithm is called {name!r}; there are: {', '.join(contestants.CONTESTANTS)}"
            )
    return list(dict.fromkeys(chosen))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command line; returns the exit code."""
    words, command = _split(sys.argv[1:] if arguments is None else list(arguments))
    options = _parser().parse_args(words)
    options.command = command
    signal.signal(signal.SIGTERM, _terminate)
    try:
        return int(_COMMANDS[options.name](options))
    except (ScenarioError, UsageError) as error:
        print(f"linklab: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("linklab: interrupted; everything that was started has been ended", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (OSError, RuntimeError) as error:
        print(f"linklab: {error}", file=sys.stderr)
        return 2


def _terminate(_: int, __: FrameType | None) -> None:
    raise KeyboardInterrupt


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
            print(result["error"] or f"{result['file']}: valid")
    return 0 if all(result["valid"] for result in results) else 2


def _scenarios(options: argparse.Namespace) -> int:
    from linklab import oracle, scenario, units

    listed = [
        {
            "name": one.name,
            "title": one.title,
            "source": one.source,
            "payload_bytes": one.payload.size_bytes,
            "oracle_s": oracle.oracle_s(one),
            "file": str(one.path),
        }
        for one in scenario.list_all()
    ]
    if options.json:
        print(json.dumps(listed, indent=2))
        return 0
    for one in listed:
        size = units.format_size(int(str(one["payload_bytes"])))
        print(f"{one['name']:<16} {size:>7} {one['oracle_s']:7.2f} s  {one['title']}"[:80])
    return 0


def _doctor(options: argparse.Namespace) -> int:
    from linklab import doctor

    return doctor.report(as_json=options.json)


def _clean(options: argparse.Namespace) -> int:
    from linklab import leftovers

    for line in leftovers.remove(cache=options.cache):
        print(line)
    return 0


def _run(options: argparse.Namespace) -> int:
    from linklab import comparing

    chosen = _contestants(options.algorithm)
    if len(chosen) != 1:
        raise UsageError(f"run takes one algorithm, not {', '.join(chosen)}: use compare")
    return comparing.run(options, chosen[0])


def _compare(options: argparse.Namespace) -> int:
    from linklab import comparing

    return comparing.compare(options, _contestants(options.algorithms))


def _exec(options: argparse.Namespace) -> int:
    from linklab import comparing

    if not options.command:
        raise UsageError("exec needs a command: linklab exec SCENARIO -- COMMAND…")
    return comparing.execute(options, tuple(options.command))


_COMMANDS = {
    "run": _run,
    "compare": _compare,
    "exec": _exec,
    "validate": _validate,
    "scenarios": _scenarios,
    "doctor": _doctor,
    "clean": _clean,
}
