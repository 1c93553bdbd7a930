from linklab.core.paths import PROFILES
from linklab.scenario import reference


def test_the_document_is_what_the_rows_say() -> None:
    written = (PROFILES / "README.md").read_text()
    assert written == reference.markdown(), "linklab scenarios --keys > profiles/README.md"
