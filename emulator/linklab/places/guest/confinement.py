"""What a guest may reach of the host: read most of it, write its run directory and its memory.

A guest is one program of the user's. What its kernel refuses (kernel.patch) can be got round by a
program inside: a path of the run directory can be made to lead out of it. So the whole guest is
fenced in from outside, by the first of these that works here:

- `namespaces` (bubblewrap): everything but the two directories is mounted read-only, secrets are
  covered, there are no other processes and no network, and of root's rights only that to read.
- `landlock`: nothing else can be written or removed, and secrets not read; but their names can be
  seen, and modes, owners and times of the user's other files be changed: Landlock has no rights
  for those. Hence it comes second.
- `none`: the guest can do what the user can do. It is said loudly; in a container that refuses
  the other two, the container is the fence.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from linklab.core.paths import DATA, MULTILINK, PYTHON_PATH, Cached, cache_dir, in_cache
from linklab.places.guest import image, image_root, landlock

SYSTEM_SECRETS = (
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/security/opasswd",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssl/private",
    "/etc/pki/tls/private",
    "/etc/letsencrypt",
    "/etc/krb5.keytab",
    "/etc/wireguard",
    "/etc/openvpn",
    "/etc/ppp",
    "/etc/wpa_supplicant",
    "/etc/NetworkManager/system-connections",
    "/etc/kubernetes",
    "/etc/rancher",
    "/run/secrets",
    "/run/credentials",
    "/run/docker.sock",
    "/run/containerd",
    "/var/lib/containerd",
    "/var/lib/docker",
    "/var/lib/kubelet",
    "/var/lib/sss",
    "/var/lib/systemd/credential.secret",
    "/var/spool/cron",
    "/var/spool/mail",
    "/var/mail",
)
"""Passwords, keys and tokens of the machine; sockets that take commands."""

SYSTEM_SECRET_PATTERNS = (
    "etc/ssh/ssh_host_*_key",
    "run/user/*/keyring",
    "run/user/*/gnupg",
    "run/user/*/bus",
    "run/user/*/systemd",
    "run/user/*/*.sock",
    "run/user/*/podman",
    "run/user/*/containers",
)

HOME_SECRETS = (
    ".ssh",
    ".gnupg",
    ".pki",
    ".password-store",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".netrc",
    ".git-credentials",
    ".config/git/credentials",
    ".config/gh",
    ".config/glab-cli",
    ".config/hub",
    ".aws",
    ".azure",
    ".config/gcloud",
    ".boto",
    ".s3cfg",
    ".config/rclone",
    ".oci",
    ".kube",
    ".docker",
    ".config/containers",
    ".terraform.d",
    ".terraformrc",
    ".vault-token",
    ".config/op",
    ".config/sops",
    ".config/age",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".config/pip",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".m2/settings.xml",
    ".gradle/gradle.properties",
    ".nuget",
    ".pgpass",
    ".my.cnf",
    ".mylogin.cnf",
    ".huggingface",
    ".cache/huggingface/token",
    ".config/huggingface",
    ".mozilla",
    ".thunderbird",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/Signal",
    ".config/Slack",
    ".claude",
    ".claude.json",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
    ".lesshst",
    ".viminfo",
    ".Xauthority",
    ".ICEauthority",
)
"""In every home: keys, tokens, browsers, and histories, in which they are typed."""

CACHE_READ = ("bundle", "ca.pem", "image", "kernel", "payloads")
"""Of linklab's own cache what guests read, and of `authority` a run's files. All else there is hidden,
such as the tokens of live labs."""


@dataclass(frozen=True)
class Fence:
    """Which confinement guests get here, and in words what it is or why there is no better; for
    namespaces the first words of the bwrap(1) that makes them."""

    name: Literal["namespaces", "landlock", "none"]
    words: str
    bubblewrap: tuple[str, ...] = ()


def secrets(needed: Sequence[Path]) -> list[Path]:
    """What no run needs and nobody else should read, as far as it exists; nothing that holds one
    of the `needed` paths."""
    homes = {Path.home(), Path("/root"), *Path("/").glob("home/*")}
    named = [
        *map(Path, SYSTEM_SECRETS),
        *(path for pattern in SYSTEM_SECRET_PATTERNS for path in Path("/").glob(pattern)),
        *(home / name for home in homes for name in HOME_SECRETS),
        *_closed_of_cache(),
    ]
    # As the kernel calls them: a link cannot be covered.
    real = sorted({Path(os.path.realpath(path)) for path in named if os.access(path, os.F_OK)})
    holding = {above for path in needed for above in (path, *path.parents)}
    return [path for path in real if path not in holding]


def _closed_of_cache() -> list[Path]:
    """What of the cache a guest does not read."""
    return [in_cache(one) for one in get_args(Cached) if one not in (*CACHE_READ, "authority")]


def _needed(*more: Path) -> list[Path]:
    """What every run needs to read."""
    own = (DATA, MULTILINK, PYTHON_PATH, Path(sys.executable), Path(sys.prefix), cache_dir())
    return [real for path in (*own, *more) for real in (path, Path(os.path.realpath(path)))]


def _namespaces(
    bubblewrap: Sequence[str],
    write: Sequence[Path],
    hidden: Sequence[Path],
    shown: Sequence[Path] = (),
) -> list[str]:
    """The words of bwrap(1) before those of the program. What is `shown` lies in what is hidden."""
    words = [
        *bubblewrap,
        "--die-with-parent",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-net",
        "--cap-drop",
        "ALL",
    ]
    if os.geteuid() == 0:  # Else it could not enter a home that is closed to others.
        words += ["--cap-add", "CAP_DAC_READ_SEARCH", "--cap-add", "CAP_SETPCAP"]
    words += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    words += ["--ro-bind-try", "/dev/shm", "/dev/shm"]
    for path in hidden:
        words += ["--tmpfs", str(path)] if path.is_dir() else ["--ro-bind", "/dev/null", str(path)]
    for path in shown:
        words += ["--ro-bind", str(path), str(path)]
    for path in write:
        words += ["--bind", str(path), str(path)]
    words += ["--chdir", str(write[0] if write else "/"), "--"]
    if os.geteuid() == 0:
        # Where root could gain rights by it, exec has the kernel forget that a program asked for
        # addresses that are not random: UML asks, starts itself again and would never end.
        keep = "-all,+dac_read_search"
        words += ["setpriv", "--bounding-set", "-all", "--inh-caps", keep, "--ambient-caps", keep]
        words.append("--")
    return words


def _landlock(write: Sequence[Path], hidden: Sequence[Path], shown: Sequence[Path]) -> list[str]:
    named = {"write": write, "hide": hidden, "show": shown}
    wanted = {what: [*map(str, paths)] for what, paths in named.items()}
    return [sys.executable, "-I", "-S", str(Path(landlock.__file__)), json.dumps(wanted)]


@functools.cache
def fence() -> Fence:
    """The best that this machine allows, tried once."""
    bubblewrap = _bubblewrap()
    refusal = _refusal(bubblewrap)
    if refusal is None:
        words = "in namespaces of its own (bubblewrap)"
        return Fence("namespaces", words, tuple(bubblewrap or ()))
    version = landlock.abi()
    if version >= landlock.LEAST_ABI:
        return Fence("landlock", f"by Landlock, version {version}; no namespaces: {refusal}")
    old = f"version {version} of {landlock.LEAST_ABI}" if version else "not in this kernel"
    return Fence(
        "none",
        f"NOT CONFINED: no namespaces ({refusal}), no Landlock ({old}): a program in the guest "
        "can change and read what you can",
    )


def _bubblewrap() -> list[str] | None:
    """The first words of bwrap(1): the host's, else the guest image's; None where neither is."""
    found = shutil.which("bwrap")
    if found is not None:
        return [found]
    root = image.cached("guest")
    return None if root is None else image_root.bubblewrap(root)


def _refusal(bubblewrap: Sequence[str] | None) -> str | None:
    """Why bubblewrap cannot make the namespaces here, or None."""
    if bubblewrap is None:
        return "bwrap is missing, and the guest image, which has one, is not made yet: make setup"
    done = subprocess.run(
        [*_namespaces(bubblewrap, [], []), "true"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode == 0:
        return None
    said = done.stderr.strip().splitlines()
    return said[-1] if said else f"bwrap ends with {done.returncode}"


def confined(program: Sequence[str], run_dir: Path, scratch: Path, *needed: Path) -> list[str]:
    """A command that runs `program` in `run_dir`, which it may write like `scratch`, and able to
    read the `needed` paths."""
    write = [Path(os.path.realpath(path)) for path in (run_dir, scratch)]
    keys = Path(os.path.realpath(in_cache("authority")))
    for path in (*_closed_of_cache(), keys):  # So what comes while the guest runs is covered.
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    hidden = [*secrets(_needed(*write, *needed)), keys]
    own = [real for path in needed if keys in (real := Path(os.path.realpath(path))).parents]
    around = fence()
    match around.name:
        case "namespaces":
            return [*_namespaces(around.bubblewrap, write, hidden, own), *program]
        case "landlock":
            return [*_landlock(write, hidden, own), *program]
        case "none":
            return [*program]
