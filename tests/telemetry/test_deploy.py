"""The dashboard, the alert rules and the table of metrics name only metrics that exist."""

import re
from pathlib import Path
from typing import Any

import msgspec
import yaml

from cambist.core.usecases.operators.health import PARTS, SIGNS
from cambist.frontends.telemetry.catalogue import METRICS, SHARED
from tests.tables import table

ROOT = Path(__file__).parents[2]
SERIES = {series: metric for metric in METRICS.values() for series in metric.series}
OF_THE_PROCESS = {"process_resident_memory_bytes", "process_cpu_seconds_total"}

_NAME = re.compile(r"\b(?:cambist|process)_[a-z_]+\b")
_SELECTOR = re.compile(r"\b(cambist_[a-z_]+)\{([^}]*)\}")
_GROUPED = re.compile(r"\b(?:by|without) \(([^)]*)\)")


def alert_rules() -> list[dict[str, Any]]:
    document = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yml").read_text("utf-8"))
    return [rule for group in document["groups"] for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    document = msgspec.json.decode((ROOT / "deploy/grafana/dashboard.json").read_bytes())
    found: list[dict[str, Any]] = document["panels"]
    return found


def expressions() -> list[str]:
    asked = [target["expr"] for panel in panels() for target in panel.get("targets", ())]
    return [*asked, *(rule["expr"] for rule in alert_rules())]


def test_every_expression_names_series_and_labels_that_exist() -> None:
    for expression in expressions():
        names = set(_NAME.findall(expression))
        assert names, expression
        assert names <= SERIES.keys() | OF_THE_PROCESS, expression
        for name, selector in _SELECTOR.findall(expression):
            labels = {part.strip() for part in re.findall(r"([a-z_]+)\s*[=!]~?", selector)}
            assert labels <= {*SERIES[name].labels, "instance", "le"}, expression
        known = {label for name in names & SERIES.keys() for label in SERIES[name].labels}
        for grouped in _GROUPED.findall(expression):
            assert {label.strip() for label in grouped.split(",")} <= known | {"instance", "le"}, expression


def test_every_expression_is_closed() -> None:
    for expression in expressions():
        for opening, closing in ("()", "{}", "[]"):
            assert expression.count(opening) == expression.count(closing), expression
        assert expression.count('"') % 2 == 0, expression


def test_metrics_that_every_process_shares_are_never_summed() -> None:
    for expression in expressions():
        for name in set(_NAME.findall(expression)) & SHARED:
            assert not re.search(rf"\bsum[^(]*\([^()]*{name}", expression), expression


def test_counters_are_asked_for_their_rate() -> None:
    for expression in expressions():
        for name in set(_NAME.findall(expression)) & SERIES.keys():
            if SERIES[name].type != "gauge":
                assert re.search(rf"\b(?:rate|increase)\({name}", expression), expression


def test_an_alert_has_a_name_of_its_own_a_severity_and_says_what_is_wrong() -> None:
    rules = alert_rules()
    names = [rule["alert"] for rule in rules]
    assert len(names) == len(set(names))
    for rule in rules:
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        assert re.fullmatch(r"Cambist[A-Za-z]+", rule["alert"])
        assert re.fullmatch(r"[0-9]+[smh]", rule.get("for", "0s"))
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert rule["annotations"]["summary"]


def test_no_panel_lies_on_another() -> None:
    taken: set[tuple[int, int]] = set()
    ids = [panel["id"] for panel in panels()]
    assert len(ids) == len(set(ids))
    for panel in panels():
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells


def section(title: str) -> str:
    """One section of docs/operations.md."""
    text = (ROOT / "docs/operations.md").read_text("utf-8")
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found is not None, f"no section {title}"
    return found[1]


def test_the_table_of_metrics_is_the_catalogue() -> None:
    rows = [line for line in section("Metrics").splitlines() if line.startswith("| `cambist_")]
    assert rows == [
        f"| `{metric.series[0] if metric.type == 'counter' else metric.name}` | {metric.type} "
        f"| {', '.join(f'`{label}`' for label in metric.labels)} | {metric.meaning} |"
        for metric in METRICS.values()
    ]


@table("rule", [*PARTS, *SIGNS])
def test_every_rule_of_health_is_explained_by_its_word(rule: str) -> None:
    assert f"| `{rule}` |" in section("Health rules")
