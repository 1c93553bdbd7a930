"""Tests the dashboards' text, and their queries on a real Prometheus with a real run's data."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import json_of, ran
from linklab.core.limits import MAX_LATE_S
from linklab.core.link_kinds import KINDS
from linklab.metrics import about, lab, results
from linklab.metrics.metric import RUN_LABELS, Metric
from linklab.metrics.run import CATALOGUE
from linklab.runs import beside_baseline
from linklab.runs.beside_baseline import BesideBaseline, Movement
from prometheus import (
    CONFIGURATION,
    DASHBOARDS,
    GRAFANA,
    Asked,
    Prometheus,
    asked,
    filled_in,
    prometheus,
)
from run_directories import changed_by_hand

LINKS = {name: kind.colours[0] for name, kind in KINDS.items()}


def panels() -> list[tuple[str, dict[str, Any]]]:
    return [(name, panel) for name, one in DASHBOARDS.items() for panel in one["panels"]]


@pytest.fixture(params=panels(), ids=lambda one: f"{one[0]}: {one[1]['title']}")
def panel(request: pytest.FixtureRequest) -> dict[str, Any]:
    made: dict[str, Any] = request.param[1]
    return made


# --- Without a Prometheus.


def test_grafanas_alerts_are_prometheus_and_lead_to_their_panels() -> None:
    provisioned = yaml.safe_load((GRAFANA / "provisioning/alerting/linklab.yaml").read_text())
    made = {rule["title"]: rule for group in provisioned["groups"] for rule in group["rules"]}
    groups = yaml.safe_load((CONFIGURATION / "alerts.yml").read_text())["groups"]
    rules = {rule["alert"]: rule for group in groups for rule in group["rules"]}
    assert made.keys() == rules.keys()
    panels = {one["id"]: one["title"] for one in DASHBOARDS["live-lab"]["panels"]}
    for name, rule in made.items():
        assert rule["annotations"] == {
            **rules[name]["annotations"],
            "__dashboardUid__": rule["dashboardUid"],
            "__panelId__": str(rule["panelId"]),
        }
        assert "$value" not in str(rule)  # Grafana does not know it.
        assert rule["dashboardUid"] == DASHBOARDS["live-lab"]["uid"]
        assert rule["panelId"] in panels
        asked, is_so = rule["data"]
        labels = re.findall(r"by \(([^)]*)\)", rules[name]["expr"])[0]
        fired = f'ALERTS{{alertname="{name}", alertstate="firing"}}[10s]'
        assert asked["model"]["expr"] == f"max by ({labels}) (max_over_time({fired}))"
        assert rule["labels"] == rules[name]["labels"]
        assert rule["condition"] == is_so["refId"]


def test_controls_are_seen() -> None:
    """Grafana from 12.3 on hides controls that the file puts into its menu (grafana#115084)."""
    for file in GRAFANA.glob("*.json"):
        assert "inControlsMenu" not in file.read_text(), file.name


def queried(dashboard: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns a dashboard's variables whose values come from Prometheus."""
    return [one for one in dashboard["templating"]["list"] if one["type"] == "query"]


def test_every_datasource_is_the_provisioned_one() -> None:
    (source,) = yaml.safe_load((GRAFANA / "provisioning/datasources/prometheus.yaml").read_text())[
        "datasources"
    ]

    def uids(node: Any) -> Iterator[str]:
        if isinstance(node, dict):
            if "datasource" in node:
                yield node["datasource"]["uid"]
            for one in node.values():
                yield from uids(one)
        elif isinstance(node, list):
            for one in node:
                yield from uids(one)

    for name, dashboard in DASHBOARDS.items():
        found = list(uids(dashboard))
        assert set(found) == {source["uid"]}, name
        asking = [*dashboard["panels"], *dashboard["annotations"]["list"]]
        assert all("datasource" in one for one in [*asking, *queried(dashboard)])
        assert all("datasource" in one for p in dashboard["panels"] for one in p["targets"])


def test_every_variable_that_is_asked_for_is_there() -> None:
    built_in = {"__rate_interval", "__interval", "__range"}
    for name, dashboard in DASHBOARDS.items():
        defined = {one["name"] for one in dashboard["templating"]["list"]}
        used = set(re.findall(r"\$([a-z_]\w*)", json.dumps(dashboard))) - {"__all"}
        assert used <= defined | built_in, name
        assert defined >= {"scenario", "algorithm", "run"}


def test_what_repeats_is_not_made_anew_with_each_refresh() -> None:
    for name, dashboard in DASHBOARDS.items():
        if any("repeat" in panel for panel in dashboard["panels"]):
            assert {one["refresh"] for one in queried(dashboard)} == {1}, name


def test_what_people_type_is_something_at_first() -> None:
    """Grafana before 12 takes the first text from `current`, later ones from `query`."""
    for dashboard in DASHBOARDS.values():
        for one in dashboard["templating"]["list"]:
            if one["type"] == "textbox":
                assert one["current"]["value"] == one["query"] != ""


BY_SERIES = {name: metric for metric in CATALOGUE for name in (metric.name, *metric.series)}
SERIES = re.compile(r"\b((?:linklab|multilink)_\w+)(?:\{([^}]*)\})?")


def rules() -> list[str]:
    groups = yaml.safe_load((CONFIGURATION / "alerts.yml").read_text())["groups"]
    return [rule["expr"] for group in groups for rule in group["rules"]]


def labels_of(metric: Metric[Any]) -> set[str]:
    return {*RUN_LABELS, *metric.labels, *(["le"] if metric.type == "histogram" else [])}


def unknown(expression: str, legend: str = "") -> list[str]:
    """Returns metrics, and labels of them, that linklab does not export."""
    found = SERIES.findall(expression)
    assert found, expression
    if wrong := [name for name, _ in found if name not in BY_SERIES]:
        return wrong
    exported = [labels_of(BY_SERIES[name]) for name, _ in found]
    made = set(re.findall(r', "([a-z]+)", "', expression))

    def named(word: str) -> set[str]:
        lists = re.findall(rf"\b{word} \(([^)]*)\)", expression)
        return {label.strip() for labels in lists for label in labels.split(",")} - {""}

    wrong = sorted(
        {one for one in named("on") if sum(one in labels for labels in exported) < 2}
        | (
            (named("by") | set(re.findall(r"{{(\w+)}}", legend)))
            - exported[0].union(*exported, made)
        )
    )
    for name, matchers in found:
        asked_for = re.findall(r'(\w+)\s*[=!]~?\s*"', matchers)
        wrong += [f"{name}.{one}" for one in asked_for if one not in labels_of(BY_SERIES[name])]
    return wrong


def test_every_metric_and_label_that_is_asked_for_is_exported() -> None:
    for one in asked():
        if "ALERTS{" not in one.expression:  # That is Prometheus' own metric.
            assert unknown(one.expression) == [], one
    for name, panel in panels():
        for target in panel["targets"]:
            if panel["title"] != "Alerts":
                assert unknown(target["expr"], target.get("legendFormat", "")) == [], (name, panel)
    for expression in rules():
        assert unknown(expression) == []


def test_alerts_have_the_limits_of_a_live_lab() -> None:
    limits = dict(re.findall(r"(linklab_\w+)\) > ([\d.]+)", "\n".join(rules())))
    assert limits == {
        lab.LATENESS.name: str(MAX_LATE_S),
        lab.BUSY.name: str(lab.BUSY_RATIO),
    }


def test_a_link_has_one_colour_everywhere(panel: dict[str, Any]) -> None:
    text = json.dumps(panel["targets"])
    by_link = "{{link}}" in text or re.search(r'link=\\"', json.dumps(text))
    for override in panel["fieldConfig"]["overrides"]:
        for name, colour in LINKS.items():
            if override["matcher"]["options"].startswith(f"/^({name}"):
                assert override["properties"][0]["value"]["fixedColor"] == colour
    if by_link and panel["type"] in ("timeseries", "barchart"):
        matched = [override["matcher"]["options"] for override in panel["fieldConfig"]["overrides"]]
        assert all(any(one.startswith(f"/^({name}") for one in matched) for name in LINKS)


# --- Prometheus' own checks.


@pytest.mark.parametrize(
    "words",
    [
        ("check", "config", "prometheus.yml"),
        ("check", "rules", "alerts.yml"),
        ("test", "rules", "alerts_test.yml"),
    ],
    ids=" ".join,
)
def test_promtool_accepts(words: tuple[str, ...]) -> None:
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed: apt-get install prometheus")
    done = ran(["promtool", *words], cwd=CONFIGURATION)
    assert done.returncode == 0, done.stdout + done.stderr


def test_between_two_runs_goodput_is_of_the_one_that_has_just_ended(tmp_path: Path) -> None:
    """A live lab exports the figures of each algorithm's last run."""
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed: apt-get install prometheus")
    (goodput,) = (one.expression for one in asked() if one.where == "Goodput")

    def told(metric: Metric[Any], run: str, value: float) -> dict[str, str]:
        return {
            "series": f'{metric.name}{{run="{run}", algorithm="{run}"}}',
            "values": f"{value}x10",
        }

    bytes_per_s = {"faster": 9e6, "last": 5e6}
    runs = enumerate(bytes_per_s.items())
    test = {
        "interval": "1s",
        "input_series": [
            one
            for ended_s, (run, value) in runs
            for one in (told(results.GOODPUT, run, value), told(about.ENDED, run, ended_s))
        ],
        "promql_expr_test": [
            {
                "expr": filled_in(goodput),
                "eval_time": "5s",
                "exp_samples": [{"labels": "{}", "value": 8 * bytes_per_s["last"]}],
            }
        ],
    }
    (tmp_path / "test.yml").write_text(json.dumps({"tests": [test]}))
    done = ran(["promtool", "test", "rules", tmp_path / "test.yml"])
    assert done.returncode == 0, done.stdout + done.stderr


# --- On a real Prometheus with a published run.


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Prometheus, list[Any]]]:
    """Publishes two real runs of the guest, and one as if a user had changed it. Yields the
    Prometheus and their slots."""
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed: apt-get install prometheus")
    work = tmp_path_factory.mktemp("published")
    scenario = work / "watched.yaml"
    scenario.write_text(
        "name: watched\npayload: {size: 60 MB}\n"
        "links:\n"
        "  wifi: {down: 60 Mbit/s, up: 20 Mbit/s, rtt: 15 ms, loss: 0.1 %}\n"
        "  lte: {down: 30 Mbit/s, up: 10 Mbit/s, rtt: 50 ms}\n"
        "  lte2: {kind: lte, down: 5 Mbit/s, up: 5 Mbit/s, rtt: 50 ms}\n"
        + "".join(
            f"  {kind}: {{down: 5 Mbit/s, up: 5 Mbit/s, rtt: 50 ms}}\n"
            for kind in KINDS
            if kind not in ("wifi", "lte")
        )
        + "events:\n"
        "  - {at: 1500 ms, link: wifi, carrier: down}\n"
        "  - {at: 2 s, link: lte, down: 20 Mbit/s}\n"
        "  - {at: 3 s, link: wifi, carrier: up}\n"
        "  - {at: 3500 ms, link: lte2, cap: 4 Mbit/s}\n"
    )

    made = json_of(work, "compare", scenario, "-a", "alg3,alg1")
    runs = sorted(Path(made["run_dir"]).iterdir())
    runs.append(changed_by_hand(runs[-1], work / "by-hand"))
    moved = Movement("download time", 8.0, 10.0, 1.5)
    for run_dir in runs:
        beside_baseline.write(run_dir, BesideBaseline("default", (moved,)))
    (work / "prometheus" / "data").mkdir(parents=True)
    target = ("--prometheus-data", work / "prometheus" / "data")
    slots = json_of(work, "publish", *runs, *target)
    again = json_of(work, "publish", *runs, *target)
    assert [one["before"] for one in slots] == [False, False, False]
    assert again == [{**one, "before": True} for one in slots]
    with prometheus(work / "prometheus") as server:
        yield server, slots


def is_published(one: Asked) -> bool:
    """Tells whether a panel shows something of these runs. Their scenario has no radio and no other
    links, and Prometheus alerts of what it scrapes."""
    if one.where == "Carrier":
        return "link!~" not in one.expression
    return one.where not in ("Radio and rates", "Alerts")


@pytest.mark.parametrize("one", [one for one in asked() if is_published(one)], ids=str)
def test_no_panel_is_empty(published: tuple[Prometheus, list[Any]], one: Asked) -> None:
    server, slots = published
    start_s, end_s = (
        f(slot[key] for slot in slots) for f, key in ((min, "start_s"), (max, "end_s"))
    )
    assert server.values(one, start_s, end_s), one


def offered(server: Prometheus, variable: dict[str, Any], start_s: int) -> dict[str, str]:
    """Returns the values of a variable that Grafana offers, and their display texts."""
    if match := re.fullmatch(r"label_values\((.+), (\w+)\)", variable["definition"]):
        found = server.ask(
            f"label/{match[2]}/values", **{"match[]": filled_in(match[1]), "start": str(start_s)}
        )
        return {one: one for one in found}
    match = re.fullmatch(r"query_result\((.+)\)", variable["definition"])
    assert match, variable["definition"]
    pattern = variable["regex"].strip("/").replace("(?<", "(?P<")
    lines = [
        "{" + ",".join(f'{label}="{value}"' for label, value in sorted(labels.items())) + "}"
        for labels, _ in server.value(filled_in(match[1]), start_s + 1)
    ]
    read = [re.search(pattern, line) for line in lines]
    return {one["value"]: one["text"] for one in read if one}


def test_no_variable_is_empty(published: tuple[Prometheus, list[Any]]) -> None:
    server, slots = published
    for name, dashboard in DASHBOARDS.items():
        for variable in queried(dashboard):
            start_s = slots[0]["start_s"]
            values = offered(server, variable, start_s)
            expected = {"algorithm": 2, "run": 3, "link": len(KINDS) + 1}.get(variable["name"], 1)
            assert len(values) == expected, (name, variable["name"], values)
            if variable["name"] == "link":
                titles = {name: kind.title for name, kind in KINDS.items()}
                assert values == {**titles, "lte2": "lte2"}


def test_every_metric_of_the_catalogue_has_data(published: tuple[Prometheus, list[Any]]) -> None:
    server, slots = published
    have = set(server.ask("label/__name__/values", start=str(slots[0]["start_s"])))
    of_workloads = {one for one in CATALOGUE if one.name.startswith("linklab_run_workload_")}
    expected = {one for metric in CATALOGUE if metric not in of_workloads for one in metric.series}
    assert len(of_workloads) == 2  # These runs are downloads.
    assert expected <= have


def test_published_runs_keep_to_their_slots_and_their_figures(
    published: tuple[Prometheus, list[Any]],
) -> None:
    server, slots = published
    for slot in slots:
        summary = json.loads((Path(slot["run_dir"]) / "summary.json").read_text())
        ((labels, seconds),) = server.value("linklab_run_download_seconds", slot["end_s"])
        assert labels["run"] == slot["run"]
        assert seconds == summary["download_s"]
        assert not server.value("linklab_link_up", slot["start_s"] - 1)
        assert not server.value("linklab_link_up", slot["end_s"] + 15)
        received = server.value("sum(multilink_received_bytes_total)", slot["end_s"])
        assert received[0][1] >= 60e6
        downs = server.value('linklab_events_total{kind="carrier-down"}', slot["end_s"])
        counted = {series["link"]: count for series, count in downs}
        assert counted == {**dict.fromkeys((*KINDS, "lte2"), 0), "wifi": 1}
        ((_, outage_s),) = server.value(
            'linklab_link_outage_seconds_total{link="wifi"}', slot["end_s"]
        )
        assert outage_s == pytest.approx(1.5, abs=1e-5)
