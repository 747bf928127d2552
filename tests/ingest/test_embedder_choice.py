"""Which bundled embedder a workspace uses: a new one gte-small, one made with MiniLM keeps it until it is reindexed."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.core.errors import UserError
from assay.models.factory import resolve_bundled
from assay.models.local.bundled import GTE_SMALL, MINILM
from assay.workspace.facade import open_workspace


def note(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_all_vectors_of_minilm_select_minilm_and_everything_else_gte_small():
    assert resolve_bundled("bundled", ()) == "gte-small"
    assert resolve_bundled("bundled", {MINILM.name}) == "minilm"
    assert resolve_bundled("bundled", {MINILM.name, GTE_SMALL.name}) == "gte-small"
    assert resolve_bundled("minilm", {GTE_SMALL.name}) == "minilm"
    assert resolve_bundled("http://127.0.0.1:9/v1", {MINILM.name}) == "http://127.0.0.1:9/v1"


@pytest.mark.long
async def test_an_old_workspace_keeps_minilm_until_it_is_reindexed(tmp_path: Path):
    kettle = note(tmp_path, "kettle.md", "The kettle in the pump house holds seven litres of water.")
    harbour = note(tmp_path, "harbour.md", "The harbour was dredged in 1931.")
    with open_workspace(tmp_path / "w", create=True, embedder="minilm") as made:
        await made.add([kettle])
    with open_workspace(tmp_path / "w") as opened:
        assert (opened.embedder.name, opened.embedder_setting) == (MINILM.name, "minilm")
        await opened.add([harbour], base="port")  # a new base of an old workspace: both can be searched together
        hits = await opened.search("how much water does the kettle hold")
        assert {hit.passage.text for hit in hits} == {kettle.read_text(), harbour.read_text()}

        await opened.reindex()
        assert opened.embedder.name == GTE_SMALL.name
        with pytest.raises(UserError, match="assay reindex --base port"):
            await opened.search("kettle")
        await opened.reindex("port")
        assert (await opened.search("how much water does the kettle hold"))[0].passage.text == kettle.read_text()


async def test_a_new_workspace_has_gte_small(tmp_path: Path):
    with open_workspace(tmp_path / "w", create=True) as opened:
        assert opened.embedder.name == GTE_SMALL.name
        await opened.add([note(tmp_path, "kettle.md", "The kettle holds seven litres.")])
    with open_workspace(tmp_path / "w") as again:
        assert again.embedder.name == GTE_SMALL.name
