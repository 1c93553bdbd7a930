"""Distributes runs to workers of Dask distributed: an own cluster, or an existing one.

Runs go one by one to idle workers, because a run takes seconds and a message milliseconds. So a new
worker gets runs within a second. A worker on a different machine never gets one. The run of a lost
worker goes to another.

Anyone who can connect to a Dask scheduler or worker can run any program there. So an own cluster
requires a key that only this process and its workers hold, in memory. An existing cluster is used
over TLS, or on the loopback device.
"""

from __future__ import annotations

import logging
import signal
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Final

import dask
import msgspec
from distributed import Client, Future, LocalCluster, wait
from distributed.comm.core import CommClosedError
from distributed.security import Security

from linklab.campaign import machine, run_process
from linklab.campaign.wire_format import Parcel, Reply
from linklab.core.errors import LinklabError
from linklab.core.scratch import scratch_prefix
from linklab.realtime.address import is_loopback

TRIES: Final = 3
"""The number of tries of a run whose lab fails. A guest without memory may find some later."""

LOSSES: Final = 5
"""A run that loses this many workers counts as the cause, and fails."""

PATIENCE_S: Final = 30.0
"""The time for the scheduler to answer, and for the first worker to join."""

_LOOK_S: Final = 0.5
"""The interval at which the scheduler is asked for its workers."""


class ClusterError(LinklabError, RuntimeError):
    """No worker can run anything. The message says why."""


@dataclass(eq=False)
class ClusterTask:
    """A run to distribute; `tried` has the workers that failed to run it."""

    label: str
    parcel: Parcel
    tries: int = 0
    losses: int = 0
    tried: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Ended:
    """A run that has ended, or was given up (then `reply.files` may be empty)."""

    label: str
    worker: str
    reply: Reply


Tell = Callable[[str], None]
"""A function that is called with one line for the user."""


@dataclass(frozen=True)
class Certificates:
    """PEM files: the trusted authority, the own certificate and its key."""

    ca: Path
    cert: Path
    key: Path


@contextmanager
def embedded(workers: int) -> Iterator[Client]:
    """Starts a cluster of `workers` processes on the loopback device, only for this process."""
    security = Security.temporary()
    with (
        tempfile.TemporaryDirectory(prefix=scratch_prefix("run")) as scratch,
        dask.config.set({"temporary_directory": scratch, **_NO_PAGES}),
        ExitStack() as stack,
    ):
        with _undisturbed():
            cluster = LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                protocol="tls://",
                security=security,
                dashboard_address=None,
                memory_limit=0,
                scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
                local_directory=scratch,
                silence_logs=logging.CRITICAL,
            )
            stack.enter_context(cluster)
        yield stack.enter_context(Client(cluster, security=security))


_NO_PAGES: Final[dict[str, list[str]]] = {
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
}
"""Dask serves web pages with logs and stacks to anyone, and its server cannot be switched off. So it
gets no pages."""


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Protects the processes started in the block from Ctrl-C.

    A terminal sends it to every process, but this process has to end the others.
    """
    # A thread started here passes its signal mask on to all that it starts later. Only the start of
    # multiprocessing's resource tracker would unblock the signal.
    resource_tracker.ensure_running()
    came: list[int] = []
    handlers = {
        one: signal.signal(one, lambda signum, _: came.append(signum))
        for one in (signal.SIGINT, signal.SIGTERM)
    }
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for one, handler in handlers.items():
            signal.signal(one, handler)
        for signum in came:
            signal.raise_signal(signum)


@contextmanager
def existing(address: str, certificates: Certificates | None, tell: Tell) -> Iterator[Client]:
    """Connects to the cluster of a scheduler.

    Without `certificates` it uses those of Dask's configuration. Raises ClusterError if the
    scheduler does not answer, or if the connection would not be secure.
    """
    security = _security(address, certificates, tell)
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    try:
        client = Client(address, timeout=PATIENCE_S, security=security)
    except (OSError, ValueError, CommClosedError) as error:
        raise ClusterError(
            f"no scheduler answers at {address}, or not to these certificates: `linklab campaign "
            f"--help` says how to start one ({str(error).splitlines()[0]})"
        ) from error
    with client:
        yield client


def _security(address: str, certificates: Certificates | None, tell: Tell) -> Security:
    """Returns the security settings for a scheduler. Raises ClusterError."""
    scheme, colon, rest = address.partition("://")
    if not colon:
        scheme, rest = "tcp", address
    if scheme == "tcp":
        if certificates is not None:
            raise ClusterError(f"{address} is without TLS: certificates go with tls://{rest}")
        if not is_loopback(rest.rpartition(":")[0].strip("[]")):
            raise ClusterError(
                f"{address} is without TLS: anyone who reaches a scheduler or worker can run programs "
                "as its user; allowed: tls:// anywhere, tcp:// on 127.0.0.1 (`linklab campaign --help`)"
            )
        tell(
            f"{address} is without TLS: any user of this machine can run programs as the user of "
            "its scheduler and workers (`linklab campaign --help`)"
        )
        return Security(require_encryption=False)
    if scheme != "tls":
        raise ClusterError(
            f"{address} is no scheduler's address; allowed: such as tls://192.0.2.7:8786"
        )
    made = Security(require_encryption=True) if certificates is None else _of_files(certificates)
    known = made.get_tls_config_for_role("client")
    if not (known["ca_file"] and known["cert"]):
        raise ClusterError(
            f"{address} needs certificates; needed: --tls-ca, --tls-cert and --tls-key, or Dask's "
            "own settings (DASK_DISTRIBUTED__COMM__TLS__…)"
        )
    try:
        made.get_connection_args("client")
    except OSError as error:
        raise ClusterError(
            f"the certificates for {address} are none that belong together: {error}"
        ) from error
    return made


def _of_files(certificates: Certificates) -> Security:
    for path in (certificates.ca, certificates.cert, certificates.key):
        try:
            path.open("rb").close()
        except OSError as error:
            raise ClusterError(f"{path}: cannot be read: {error.strerror}") from error
    return Security(
        require_encryption=True,
        tls_ca_file=str(certificates.ca),
        tls_client_cert=str(certificates.cert),
        tls_client_key=str(certificates.key),
    )


class Dispatch:
    """Distributes tasks to the workers of a cluster whose machine matches `facts`."""

    def __init__(self, client: Client, facts: dict[str, str], tell: Tell) -> None:
        self._client = client
        self._facts = facts
        self._tell = tell
        self._judged: dict[str, list[str]] = {}
        self.workers: dict[str, int] = {}

    def find_workers(self) -> None:
        """Waits for the first worker. Raises ClusterError if none joins, or none matches."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            self._look()
            if self.workers:
                return
            if self._judged:
                raise ClusterError(
                    "no worker will do:"
                    + "".join(f"\n  {at}: {', '.join(why)}" for at, why in self._judged.items())
                )
            time.sleep(_LOOK_S)
        raise ClusterError(
            f"no worker came within {PATIENCE_S:.0f} s: start one with "
            "`dask worker --nthreads 1 SCHEDULER`"
        )

    def run_all(
        self, tasks: Sequence[ClusterTask], started: Callable[[str], None] = lambda _: None
    ) -> Iterator[Ended]:
        """Runs all tasks, and yields each as it ends.

        If the caller stops early, the remaining tasks are given up.
        """
        waiting = deque(tasks)
        flying: dict[Future[bytes], tuple[ClusterTask, str]] = {}
        try:
            while waiting or flying:
                self._look()
                for future in [one for one, (_, at) in flying.items() if at not in self.workers]:
                    task, at = flying.pop(future)
                    future.cancel(force=True)
                    ended = self._lost(task, at, waiting)
                    if ended:
                        yield ended
                self._hand_out(waiting, flying, started)
                for future in self._done(list(flying)):
                    task, at = flying.pop(future)
                    ended = self._take(future, task, at, waiting)
                    if ended:
                        yield ended
        finally:
            for future in flying:
                future.cancel(force=True)

    def _look(self) -> None:
        """Updates the list of workers, and checks whether new ones match."""
        there = dict(self._client.nthreads())
        new = [at for at in there if at not in self._judged]
        if new:
            told = self._client.run(machine.facts, workers=new, on_error="return")
            for at, found in told.items():
                why = (
                    [f"linklab does not run there: {found}"]
                    if isinstance(found, Exception)
                    else machine.differences(self._facts, found)
                )
                self._judged[at] = why
                if why:
                    self._tell(f"the worker {at} gets no runs: {', '.join(why)}")
        for at in [at for at in self._judged if at not in there]:
            del self._judged[at]
        before = self.workers
        self.workers = {at: there[at] for at, why in self._judged.items() if not why}
        if before and not self.workers:
            self._tell("no worker is left: waiting for one")

    def _hand_out(
        self,
        waiting: deque[ClusterTask],
        flying: dict[Future[bytes], tuple[ClusterTask, str]],
        started: Callable[[str], None],
    ) -> None:
        busy = [at for _, at in flying.values()]
        for at, threads in self.workers.items():
            for _ in range(threads - busy.count(at)):
                task = next(
                    (
                        one
                        for one in waiting
                        if at not in one.tried or self.workers.keys() <= one.tried
                    ),
                    None,
                )
                if task is None:
                    break
                waiting.remove(task)
                parcel = msgspec.msgpack.encode(task.parcel)
                future = self._client.submit(
                    run_process.perform, parcel, workers=[at], pure=False, allow_other_workers=False
                )
                flying[future] = (task, at)
                started(task.label)

    def _done(self, futures: list[Future[bytes]]) -> list[Future[bytes]]:
        if not futures:
            time.sleep(_LOOK_S)
            return []
        try:
            return list(wait(futures, timeout=_LOOK_S, return_when="FIRST_COMPLETED").done)
        except TimeoutError:
            return []

    def _take(
        self, future: Future[bytes], task: ClusterTask, at: str, waiting: deque[ClusterTask]
    ) -> Ended | None:
        try:
            encoded = future.result(timeout=PATIENCE_S)
        except TimeoutError:  # The worker ended after its run, and its reply is lost.
            return self._lost(task, at, waiting)
        except Exception as error:  # Dask raises the worker's exception here.
            reply = Reply(failure=str(error), again=True, wall_s=0.0, files=b"")
        else:
            reply = msgspec.msgpack.decode(encoded, type=Reply)
        finally:
            future.cancel()
        task.tries += 1
        if reply.again and task.tries < TRIES:
            task.tried.add(at)
            self._tell(f"{task.label}: once more, because {reply.failure}")
            waiting.append(task)
            return None
        if reply.again:
            failure = f"{reply.failure} (tried {task.tries} times)"
            reply = msgspec.structs.replace(reply, failure=failure)
        return Ended(task.label, at, reply)

    def _lost(self, task: ClusterTask, at: str, waiting: deque[ClusterTask]) -> Ended | None:
        task.losses += 1
        if task.losses < LOSSES:
            self._tell(f"{task.label}: once more, because the worker {at} is gone")
            waiting.appendleft(task)
            return None
        failure = f"{task.losses} workers were lost with it"
        return Ended(task.label, at, Reply(failure=failure, again=True, wall_s=0.0, files=b""))
