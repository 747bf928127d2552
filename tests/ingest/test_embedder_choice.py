"""A workspace whose vectors are of an embedder that is gone, or of another one: all works but search, until it is reindexed."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.core.errors import UserError
from assay.models.local.bundled import NAME
from assay.store.access import grants
from assay.workspace.facade import Workspace, open_workspace

FORMER = "all-MiniLM-L6-v2/mean/256"  # the bundled embedder of earlier versions


def note(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def with_former_vectors(workspace: Workspace) -> None:
    for base in grants.every_base(workspace.store):
        grants.set_embedder(workspace.store, base, FORMER, 384)


async def test_a_workspace_of_a_former_embedder_opens_and_search_says_what_to_do(tmp_path: Path):
    kettle = note(tmp_path, "kettle.md", "The kettle in the pump house holds seven litres of water.")
    with open_workspace(tmp_path / "w", create=True) as made:
        await made.add([kettle])
        runs = [run async for run, _ in made.ask("How many litres does the kettle hold?")]
        with_former_vectors(made)
    with open_workspace(tmp_path / "w") as opened:
        (entry,) = opened.documents.listing()
        found = opened.documents.get(entry.id)
        assert found is not None and found.text.strip() == kettle.read_text()
        assert opened.questions.run(runs[-1].id).answer == runs[-1].answer
        with pytest.raises(UserError, match="assay reindex --base default"):
            await opened.search("kettle")
        with pytest.raises(UserError, match="assay reindex --base default"):
            [step async for step in opened.ask("How many litres does the kettle hold?")]
        await opened.documents.reindex()
        assert (await opened.search("how much water does the kettle hold"))[0].passage.text == kettle.read_text()


async def test_the_former_name_of_a_bundled_embedder_is_refused_with_what_to_do(tmp_path: Path):
    with (
        open_workspace(tmp_path / "w", create=True, embedder="minilm") as opened,
        pytest.raises(UserError, match="Set `embedder`, then run `assay reindex`"),
    ):
        await opened.add([note(tmp_path, "kettle.md", "The kettle holds seven litres.")])


async def test_a_new_workspace_has_gte_small(tmp_path: Path):
    with open_workspace(tmp_path / "w", create=True) as opened:
        assert opened.embedder.name == NAME
        await opened.add([note(tmp_path, "kettle.md", "The kettle holds seven litres.")])
    with open_workspace(tmp_path / "w") as again:
        assert again.embedder.name == NAME
