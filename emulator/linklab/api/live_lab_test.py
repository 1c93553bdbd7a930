"""Tests that a new key of an event arrives in scenario, command, page, Python, Go and HTTP."""

import re
import subprocess
import sys

from linklab.core.paths import PYTHON_PATH, REPOSITORY
from linklab.models import events
from linklab.realtime import page_files

NEW_KEY = '''
import argparse, json, sys, types
from pathlib import Path

# A new key is an attribute and a row.
source = Path("linklab/models/events.py").read_text()
for place, more in (
    ("    cap_bps: Bps | None = None\\n", "    glow_ratio: Ratio | None = None\\n"),
    ('    Row("cap", ', '    Row("glow", "glow_ratio", SHARE, "how much it glows", unset=None),\\n'),
):
    assert source.count(place) == 1
    source = source.replace(place, more + place)
import linklab.models
module = types.ModuleType("linklab.models.events")
sys.modules[module.__name__] = linklab.models.events = module
exec(source, module.__dict__)

from linklab import scenario
from linklab.api.live_lab import LabLink
from linklab.commands import link
from linklab.lab.player.control import Command
from linklab.metrics.about import Setting
from linklab.metrics.run import RunLabels, RunMetrics
from linklab.realtime import link_command, messages, openapi
from linklab.realtime.view import Cursor, PageView

TEXT = """name: small
payload: {size: 1 MB}
links: {wifi: {down: 1 Mbit/s, up: 1 Mbit/s, rtt: 10 ms}}
events: [{at: 1 s, link: wifi, glow: 50 %}]
"""
wanted = Command(link="wifi", glow_ratio=0.5)
lab = scenario.parse(TEXT)
assert lab.events[0].glow_ratio == 0.5
assert "glow: 50 %" in scenario.to_yaml(lab)

sent = []
link_command.send = lambda address, command: sent.append(command)
parser = argparse.ArgumentParser()
link.add_options(parser)
link.run(parser.parse_args(["wifi", "glow", "50 %"]))
LabLink("wifi", types.SimpleNamespace(send=sent.append)).set(glow="50 %")
body = json.dumps(link_command.change_of(wanted)).encode()
sent.append(messages.command_of("wifi", messages.decoded(body, messages.LinkChange)))
assert sent == [wanted] * 3, sent
assert "how much it glows" in link.EPILOG
schemas = openapi.document("1")["components"]["schemas"]
assert "glow" in schemas["LinkChange"]["properties"]
assert wanted.in_words() == "glow 50 %"

metrics = RunMetrics(
    RunLabels("r", "s", "1 MB", "", "1", "real"), ("wifi",), 1, Setting("guest", "r1", 2, 1.0)
)
about = PageView(1, "", "", 1, lab, metrics).since(Cursor())[1]["run"]
assert about["keys"][""]["glow"].startswith("how much it glows; allowed: 0 %")
'''


def test_a_new_key_is_an_attribute_and_a_row() -> None:
    """Go takes any key, and the lab checks it: see client/linklabtest/link_test.go."""
    subprocess.run([sys.executable, "-c", NEW_KEY], cwd=PYTHON_PATH, check=True, timeout=120)


def test_the_page_s_sliders_are_keys_of_events() -> None:
    script = (page_files.DIRECTORY / "quantities.js").read_text()
    controls = re.findall(r"^  (\w+): \{ label:", script, re.M)
    assert controls == [key for key in events.LIVE.keys.all if key in controls]
    assert len(controls) == 6


def test_go_knows_no_key_that_events_have_not() -> None:
    source = (REPOSITORY / "client" / "linklabtest" / "link.go").read_text()
    named = set(re.findall(r'Change\{"(\w+)":', source)) - {"restore"}
    assert named <= set(events.LIVE.keys.all) | {"loss"}
