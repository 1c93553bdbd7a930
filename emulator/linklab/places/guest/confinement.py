"""Confines a guest's access to the host.

A guest reads the host's programs and libraries. Of users' homes it reads only what its run needs.
It writes its run directory and its memory file.

A guest is a program of the user's. A program inside can get around the refusals of its kernel
(kernel.patch), such as by a path of the run directory that leads out of it. So the whole guest is
confined from outside, by the first of these that works on this machine:

- `namespaces` (bubblewrap): all but the two directories is mounted read-only. Homes and secrets are
  covered. There are no other processes and no network. Of root's capabilities only reading is left.
- `landlock`: nothing else can be written or removed, and homes and secrets cannot be read. Names
  stay visible, and modes, owners and times of the user's other files can be changed, because
  Landlock has no rights for them. So this comes second.
- `none`: the guest can do what the user can do, and linklab warns. In a container that refuses the
  other two, the container confines the guest.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from linklab.core import shared_tables
from linklab.core.paths import (
    GUEST_MULTILINK,
    PROFILES,
    PYTHON_PATH,
    SERVER_CONFIGURATION,
    SERVER_EXCHANGE,
    Cached,
    in_cache,
)
from linklab.places.guest import homes, image, image_root, landlock, user_namespaces

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
    "/etc/netplan",
    "/etc/kubernetes",
    "/etc/rancher",
    "/run/secrets",
    "/run/credentials",
    "/run/docker.sock",
    "/run/containerd",
    "/var/backups",
    "/var/lib/NetworkManager",
    "/var/lib/bluetooth",
    "/var/lib/containerd",
    "/var/lib/docker",
    "/var/lib/iwd",
    "/var/lib/kubelet",
    "/var/lib/mysql",
    "/var/lib/postgresql",
    "/var/lib/sss",
    "/var/lib/systemd/credential.secret",
    "/var/lib/tailscale",
    "/var/spool/cron",
    "/var/spool/mail",
    "/var/mail",
)
"""The machine's passwords, keys and tokens, and sockets that accept commands."""

SYSTEM_SECRET_PATTERNS = ("etc/ssh/ssh_host_*_key",)

CACHE_READ: tuple[Cached, ...] = ("bundle", "ca.pem", "image", "kernel", "payloads")
"""The parts of linklab's cache that guests read; of `authority` they read the run's files. The rest
is hidden, such as the tokens of live labs."""

OWN = (
    PYTHON_PATH / "linklab",
    PROFILES,
    SERVER_CONFIGURATION,
    SERVER_EXCHANGE,
    *shared_tables.FILES,
    GUEST_MULTILINK,
)
"""linklab's own files that every run reads."""


@dataclass(frozen=True)
class Fence:
    """The confinement of guests on this machine.

    `words` says what it is, or why there is no better one. For namespaces `bubblewrap` has the
    first words of the bwrap(1) command.
    """

    name: Literal["namespaces", "landlock", "none"]
    words: str
    bubblewrap: tuple[str, ...] = ()


@dataclass(frozen=True)
class View:
    """The host's files that a guest sees. For nested paths the inner one decides.

    Attributes:
        write: directories that the guest writes.
        hidden, shown: paths that the guest cannot and can read.
        links: symbolic links inside hidden directories that lead to shown paths.
    """

    write: tuple[Path, ...]
    hidden: frozenset[Path]
    shown: frozenset[Path] = frozenset()
    links: Mapping[Path, str] = field(default_factory=dict)

    def is_hidden(self, path: Path) -> bool:
        """Tells whether a path lies inside a hidden directory. The path's own entry does not count."""
        for above in path.parents:
            if above in self.hidden:
                return True
            if above in self.shown or above in self.write:
                return False
        return False


def view(write: Sequence[Path], needed: Sequence[Path]) -> View:
    """Returns the view of a guest that writes the directories `write` and reads `needed`."""
    written = [Path(os.path.realpath(path)) for path in write]
    named = [
        *map(Path, SYSTEM_SECRETS),
        *(path for pattern in SYSTEM_SECRET_PATTERNS for path in Path("/").glob(pattern)),
        *_closed_of_cache(),
        in_cache("authority"),
    ]
    links: dict[Path, str] = {}
    shown = set()
    for path in (*OWN, *(in_cache(one) for one in CACHE_READ), *needed):
        on_the_way, real = homes.steps(path)
        if os.access(real, os.F_OK):
            links |= on_the_way
            shown.add(real)
    # Resolved paths, because a symbolic link cannot be covered.
    hidden = {Path(os.path.realpath(path)) for path in named if os.access(path, os.F_OK)}
    # A user who shows /home means the homes in it.
    hidden |= {tree for tree in homes.found().trees if shown.isdisjoint(tree.parents)}
    return View(
        tuple(written),
        frozenset(hidden - shown - set(written)),
        frozenset(shown - set(written)),
        links,
    )


def _closed_of_cache() -> list[Path]:
    """Lists the parts of the cache that guests do not read."""
    return [in_cache(one) for one in get_args(Cached) if one not in (*CACHE_READ, "authority")]


def _namespaces(bubblewrap: Sequence[str], seen: View) -> list[str]:
    """Returns the words of the bwrap(1) command before those of the program."""
    words = [
        *bubblewrap,
        *("--die-with-parent", "--unshare-pid", "--unshare-ipc", "--unshare-net"),
        *("--cap-drop", "ALL"),
    ]
    if os.geteuid() == 0:  # Otherwise root could not enter private homes.
        words += ["--cap-add", "CAP_DAC_READ_SEARCH", "--cap-add", "CAP_SETPCAP"]
    words += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    words += ["--ro-bind-try", "/dev/shm", "/dev/shm"]
    covered = []
    for path in sorted({*seen.hidden, *seen.shown, *seen.links, *seen.write}):  # The outer first.
        name, lies_hidden = str(path), seen.is_hidden(path)
        if path in seen.write:
            words += ["--bind", name, name]
        elif path in seen.shown:
            words += ["--ro-bind-try", name, name] if lies_hidden else []
        elif path in seen.links:
            words += ["--symlink", seen.links[path], name] if lies_hidden else []
        elif lies_hidden:
            continue
        elif path.is_dir():
            words += ["--tmpfs", name]
            covered += ["--remount-ro", name]
        else:
            words += ["--ro-bind", "/dev/null", name]
    words += covered
    words += ["--chdir", str(seen.write[0] if seen.write else "/"), "--"]
    if os.geteuid() == 0:
        # UML disables address randomisation and executes itself again. If root gained capabilities
        # by exec, the kernel would enable the randomisation again, and UML would loop for ever.
        keep = "-all,+dac_read_search"
        words += ["setpriv", "--bounding-set", "-all", "--inh-caps", keep, "--ambient-caps", keep]
        words.append("--")
    return words


def _landlock(seen: View) -> list[str]:
    named = {"write": seen.write, "hide": seen.hidden, "show": seen.shown}
    wanted = {what: sorted(map(str, paths)) for what, paths in named.items()}
    return [sys.executable, "-I", "-S", str(Path(landlock.__file__)), json.dumps(wanted)]


@functools.cache
def fence() -> Fence:
    """Returns the best confinement that this machine allows. It is tried once."""
    bubblewrap = _bubblewrap()
    refusal = _refusal(bubblewrap)
    if refusal is None:
        words = "in namespaces of its own (bubblewrap)"
        return Fence("namespaces", words, tuple(bubblewrap or ()))
    allowed = user_namespaces.remedy()
    if allowed:
        refusal += f"; as root, this allows them: {allowed}"
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
    """Returns the first words of bwrap(1): the host's, else the guest image's; None without both."""
    found = shutil.which("bwrap")
    if found is not None:
        return [found]
    root = image.cached("guest")
    return None if root is None else image_root.bubblewrap(root)


def _refusal(bubblewrap: Sequence[str] | None) -> str | None:
    """Returns why bubblewrap cannot make the namespaces here, or None."""
    if bubblewrap is None:
        return "bwrap is missing, and the guest's image, which has one, is not made yet"
    return user_namespaces.refused([*_namespaces(bubblewrap, View((), frozenset())), "true"])


def confined(program: Sequence[str], run_dir: Path, scratch: Path, *needed: Path) -> list[str]:
    """Returns a command that runs `program` confined, with `run_dir` as its working directory.

    The program can write `run_dir` and `scratch`, and read the `needed` paths.
    """
    for path in (*_closed_of_cache(), in_cache("authority")):
        # A directory that exists is covered, also for files that appear while the guest runs.
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    seen = view((run_dir, scratch), needed)
    around = fence()
    match around.name:
        case "namespaces":
            return [*_namespaces(around.bubblewrap, seen), *program]
        case "landlock":
            return [*_landlock(seen), *program]
        case "none":
            return [*program]
