"""Gives tests of pytest the lab: the fixtures `linklab` and `linklab_live`, a marker and options.

pytest loads this module in every project where linklab is installed. So it imports nothing else of
linklab until a test uses it.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from linklab.testing.case import INSIDE, PROPERTY, WRITTEN, Case

if TYPE_CHECKING:
    from linklab.testing.lab_fixture import LabFixture
    from linklab.testing.live_fixture import LiveFixture

_SEEDS_AT_MOST = 1000

_WIDE = {"module": "module_linklab_live", "session": "session_linklab_live"}
"""The fixtures whose labs several tests share, by scope."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the plugin's options."""
    group = parser.getgroup("linklab", "downloads over emulated links")
    group.addoption(
        "--linklab-update",
        action="store_true",
        help="make the figures of linklab.check(run) the baselines",
    )
    group.addoption(
        "--linklab-report",
        type=Path,
        metavar="FILE.html",
        help="write a report of the failed tests' runs",
    )
    group.addoption(
        "--linklab-scenario",
        metavar="SCENARIO",
        help="run the tests inside the lab, behind this scenario's links, in virtual time",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Describes the marker."""
    config.addinivalue_line(
        "markers",
        "linklab(*scenarios, runs=1, seed=1, timeout=None): run the test for each scenario and seed; "
        "timeout is in seconds of the lab's time (linklab)",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """Runs the whole command inside the lab if `--linklab-scenario` asks for it."""
    scenario = config.getoption("--linklab-scenario")
    if scenario is None or INSIDE in os.environ:
        return None
    from linklab.testing import inside_lab  # Only this option needs it.

    return inside_lab.run(scenario, config.invocation_params.args)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Makes a test of each scenario and seed of the marker."""
    marker = metafunc.definition.get_closest_marker("linklab")
    if marker is None or "linklab_case" not in metafunc.fixturenames:
        return
    where = metafunc.definition.nodeid
    allowed = {"runs": 1, "seed": 1, "timeout": None}
    if unknown := sorted(marker.kwargs.keys() - allowed):
        raise pytest.Collector.CollectError(
            f"{where}: the marker linklab has no {unknown[0]!r}; allowed: scenarios, runs, seed, "
            "timeout"
        )
    given = {**allowed, **marker.kwargs}
    runs, seed = given["runs"], given["seed"]
    if not isinstance(runs, int) or not 1 <= runs <= _SEEDS_AT_MOST:
        raise pytest.Collector.CollectError(
            f"{where}: runs={runs!r} of the marker linklab; allowed: 1 to 1000"
        )
    if not isinstance(seed, int) or seed < 0:
        raise pytest.Collector.CollectError(
            f"{where}: seed={seed!r} of the marker linklab; allowed: 0 to 2^63-1"
        )
    cases = [
        Case(one, seed + n, given["timeout"]) for one in marker.args or (None,) for n in range(runs)
    ]
    names = [f"{Path(one.scenario or 'seed').stem}-{one.seed}" for one in cases]
    metafunc.parametrize("linklab_case", cases, ids=names, indirect=True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Says that one process of pytest-xdist runs all tests on the real clock (`--dist loadgroup`).

    A lock keeps them apart in any case: pytest-xdist 3.8 makes no groups with pytest 9.2.
    """
    if not config.pluginmanager.hasplugin("xdist"):
        return
    for item in items:
        if not {"linklab_live", *_WIDE.values()}.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.xdist_group("linklab_live"))


@pytest.fixture
def linklab_case(request: pytest.FixtureRequest) -> Case:
    """Returns the scenario and seed of this test, from its marker."""
    found: Case = getattr(request, "param", Case())
    return found


@pytest.fixture
def linklab(
    request: pytest.FixtureRequest, linklab_case: Case, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LabFixture]:
    """Runs downloads and programs over emulated links, in virtual time."""
    from linklab.testing import guest, lab_fixture  # Only tests with the fixture need them.

    guest.require(request.config)
    made = lab_fixture.LabFixture(request, linklab_case, tmp_path_factory.mktemp("linklab"))
    yield made


@pytest.fixture
def linklab_live(
    request: pytest.FixtureRequest,
    linklab_case: Case,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[LiveFixture]:
    """Opens a lab on the real clock, and sets the variables of the environment that name its proxy."""
    from linklab.testing import guest, live_fixture  # Only tests with the fixture need them.

    guest.require(request.config)
    out = tmp_path_factory.mktemp("linklab")
    with live_fixture.opening(request, linklab_case, out, monkeypatch) as made:
        yield made


def _wide(scope: Any) -> Any:
    """Returns a fixture as `linklab_live`, whose labs end after a module or the session."""

    def fixture(
        request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
    ) -> Iterator[LiveFixture]:
        """Opens labs on the real clock that tests share. Before each test they are set back to the
        scenario's start."""
        from linklab.testing import guest, live_fixture  # Only tests with the fixture need them.

        guest.require(request.config)
        marker = request.node.get_closest_marker("linklab")
        case = Case(*(marker.args[:1] if marker else ()))
        out = tmp_path_factory.mktemp("linklab")
        with (
            pytest.MonkeyPatch.context() as monkeypatch,
            live_fixture.opening(request, case, out, monkeypatch) as made,
        ):
            request.config.stash.setdefault(_SHARED, {})[_WIDE[scope]] = made
            yield made
            del request.config.stash[_SHARED][_WIDE[scope]]

    return pytest.fixture(scope=scope, name=_WIDE[scope])(fixture)


_SHARED = pytest.StashKey[dict[str, Any]]()
"""The open fixtures that tests share, by name."""

module_linklab_live, session_linklab_live = map(_wide, _WIDE)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Sets the labs back that this test shares with earlier ones, before its fixtures begin."""
    for name, shared in item.config.stash.get(_SHARED, {}).items():
        if name in getattr(item, "fixturenames", ()):
            shared.restore()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds to a failed test's report how its links went."""
    report = yield
    if report.when == "call" and report.failed and _runs(report):
        from linklab.testing import showing  # Only failed tests with runs need it.

        report.sections += showing.sections(_runs(report))
    return report


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Prints how the links of failed tests went, and how many runs there were."""
    reports = [one for ones in terminalreporter.stats.values() for one in ones if _runs(one)]
    reports = [one for one in reports if one.when == "call"]
    if not reports:
        return
    from linklab.testing import showing  # Only sessions with runs need it.

    terminalreporter.section("linklab")
    written = dict.fromkeys(path for one in reports for path in _properties(one, WRITTEN))
    for path in written:
        terminalreporter.write_line(f"baseline written: {path}")
    for line in showing.summary([(one.nodeid, one.outcome, _runs(one)) for one in reports]):
        terminalreporter.write_line(line)
    page = config.getoption("--linklab-report")
    failed = [run for one in reports if one.failed for run in _runs(one)]
    if page is not None and failed:
        terminalreporter.write_line(showing.write_page(page, failed))


def _runs(report: Any) -> list[dict[str, Any]]:
    """Returns what a report says of its test's runs. pytest-xdist carries it between processes."""
    return _properties(report, PROPERTY)


def _properties(report: Any, wanted: str) -> list[Any]:
    return [value for name, value in getattr(report, "user_properties", ()) if name == wanted]
