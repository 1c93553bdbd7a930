import runpy
from pathlib import Path

HANDBOOK = Path(__file__).parents[3] / "handbook"


def test_the_page_of_the_http_api_is_of_the_code() -> None:
    made = runpy.run_path(str(HANDBOOK / "http_api.py"))["markdown"]()
    page = HANDBOOK / "reference" / "http-api.md"
    assert page.read_text() == made, "python emulator/handbook/http_api.py"
