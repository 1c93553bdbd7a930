from linklab.core.paths import PROFILES
from linklab.models import registry
from linklab.scenario import reference, settings


def test_the_document_is_what_the_rows_say() -> None:
    written = (PROFILES / "README.md").read_text()
    assert written == reference.markdown(), "linklab scenarios --keys > profiles/README.md"


def test_every_key_is_explained_once() -> None:
    sections = list(reference._sections("", settings.TABLE))
    paths = [section.path for section in sections]
    assert len(paths) == len(set(paths))
    explained = {path.removesuffix("[]") for path in paths}
    assert {f"links.NAME.{model.rows[0].key}" for model in registry.MODELS} - explained == {
        "links.NAME.between_runs"
    }
    for section in sections:
        keys = [row.key for row, _ in section.rows]
        assert len(keys) == len(set(keys)), section.path
        assert all(row.about for row, _ in section.rows), section.path
