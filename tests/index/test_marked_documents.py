"""Documents that are switched off, tagged, or left out by a filter: what is searched, listed and counted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from notes import Plain
from older_schema import BEFORE_MARKS

from assay.core.access import Principal
from assay.core.errors import Missing, UserError
from assay.core.events import DocumentMarked, SearchFilters
from assay.core.types import LeftOut
from assay.evaluate.plain_text import WordEmbedder
from assay.ingest.parsed import Parsed
from assay.ingest.sources import SourceFile
from assay.store import document_list, documents
from assay.store.access import grants
from assay.store.documents import Entry
from assay.store.runs import records
from assay.workspace.facade import DEFAULT_BASE, Workspace, open_workspace
from assay.workspace.types import AskOptions, SynthesisRequest

READER = Principal("reader")
TEXTS = {
    "keeper.txt": "The keeper of Carrow Point is paid eleven crowns.",
    "lamp.txt": "The lamp room of Carrow Point is painted red.",
    "boat.txt": "The boat of Carrow Point is painted green.",
}
DATES = {"keeper.txt": "2024-05-17", "lamp.txt": None, "boat.txt": None}
PERIODS = {"boat.txt": {"period": "FY2018", "organisation": "Harrow Tides plc", "kind_of_document": "annual report"}}


class Dated(Plain):
    """Reads texts, with the metadata above."""

    async def read(self, data: Path | bytes, name: str) -> Parsed:
        read = await super().read(data, name)
        return Parsed(
            text=read.text, kind=read.kind, title=name, date=DATES.get(name), authors=("Zoë Müller",) * (name[0] == "k"),
            meta=PERIODS.get(name, {}),
        )  # fmt: skip


def files(**changed: str) -> list[SourceFile]:
    texts = TEXTS | {f"{name}.txt": words for name, words in changed.items()}
    return [SourceFile(uri=f"upload:{name}", name=name, data=words.encode()) for name, words in texts.items()]


@pytest.fixture
async def opened(tmp_path: Path) -> Workspace:
    made = open_workspace(tmp_path / "workspace", create=True)
    made.embedder = WordEmbedder()
    await made.documents.add_sources(files(), reader=Dated())
    return made


@pytest.fixture(autouse=True)
def _closed(opened: Workspace) -> Iterator[None]:
    yield
    opened.close()


def entry(opened: Workspace, name: str) -> Entry:
    return next(each for each in opened.documents.listing() if each.name == name and each.state != "unreadable")


async def found(opened: Workspace, where: SearchFilters | None = None, who: Principal | None = None) -> set[str]:
    seen = opened.for_principal(who) if who else opened
    return {hit.title for hit in await seen.search("Carrow Point", 20, where)}


async def share_all_but_the_lamp(opened: Workspace) -> None:
    grants.share(opened.store, opened.scope().named(DEFAULT_BASE), "user:reader")
    await opened.people.share_document(entry(opened, "lamp.txt").id, "user:reader", False)


# --- off and on -----------------------------------------------------------------------------------------------------


async def test_a_document_that_is_off_is_not_found_and_comes_back_when_it_is_on(opened: Workspace):
    lamp = entry(opened, "lamp.txt").id
    opened.documents.mark(lamp, off=True)
    assert await found(opened) == {"keeper.txt", "boat.txt"}
    assert entry(opened, "lamp.txt").standing == "off" and opened.documents.is_off(lamp)
    opened.documents.mark(lamp, off=False)
    assert await found(opened) == set(TEXTS)


async def test_a_document_that_is_off_is_not_listed_to_the_agent_and_not_quoted(opened: Workspace):
    lamp = entry(opened, "lamp.txt").id
    opened.documents.mark(lamp, off=True)
    scope = opened.scope()
    assert lamp not in {each.id for each in documents.listing(opened.store, scope)}
    assert not documents.entries(opened.store, [lamp], scope) and not documents.titles(opened.store, [lamp], scope)
    assert lamp not in documents.identities(opened.store, scope)
    how = AskOptions(model=False)
    run = [run async for run, _ in opened.ask("What is painted red at Carrow Point?", how)][-1]
    assert lamp not in {each.passage.doc_id for each in run.found} and lamp not in str(run.answer)
    with pytest.raises(UserError):
        _ = [run async for run, _ in opened.syntheses.begin([lamp], SynthesisRequest(model=False))]


async def test_old_answers_still_show_what_they_cite_of_a_document_that_is_off(opened: Workspace):
    run = [run async for run, _ in opened.ask("What is painted red at Carrow Point?", AskOptions(model=False))][-1]
    opened.documents.mark(entry(opened, "lamp.txt").id, off=True)
    assert opened.questions.run(run.id).answer == run.answer and opened.questions.run(run.id).evidence


async def test_a_document_stays_off_and_tagged_when_its_file_is_added_again_changed_or_not(opened: Workspace):
    lamp = entry(opened, "lamp.txt").id
    opened.documents.mark(lamp, off=True, tags=["red"])
    same = await opened.documents.add_sources(files(), reader=Dated())
    report = next(each for each in same.files if "lamp" in each.path)
    assert report.outcome == "unchanged" and "switched off" in report.why
    assert entry(opened, "lamp.txt").id == lamp and entry(opened, "lamp.txt").off
    other = await opened.documents.add_sources(files(lamp="The lamp room of Carrow Point is white."), reader=Dated())
    assert "switched off" in next(each for each in other.files if "lamp" in each.path).why
    after = entry(opened, "lamp.txt")
    assert after.id != lamp and after.off and after.tags == ("red",)
    assert "lamp.txt" not in await found(opened)


async def test_a_document_stays_off_when_its_base_is_indexed_anew(opened: Workspace):
    opened.documents.mark(entry(opened, "lamp.txt").id, off=True)
    await opened.documents.reindex()
    assert await found(opened) == {"keeper.txt", "boat.txt"}
    opened.documents.mark(entry(opened, "lamp.txt").id, off=False)
    assert await found(opened) == set(TEXTS)


async def test_counts_tell_documents_that_are_off_apart(opened: Workspace):
    opened.documents.mark(entry(opened, "lamp.txt").id, off=True)
    (counted,) = document_list.counts(opened.store, opened.scope()).values()
    assert (counted.ready, counted.off, counted.passages) == (2, 1, 2)
    ready, off = (document_list.page(opened.store, opened.scope(), (state,)) for state in ("ready", "off"))
    assert (ready.total, [each.name for each in off.entries]) == (2, ["lamp.txt"])
    assert document_list.page(opened.store, opened.scope()).total == 3


async def test_switching_one_document_off_and_another_on_changes_the_state_of_the_search(opened: Workspace):
    lamp, boat = entry(opened, "lamp.txt").id, entry(opened, "boat.txt").id
    opened.documents.mark(boat, off=True)
    before = documents.state_of(opened.store, opened.scope())
    opened.documents.mark(boat, off=False)
    opened.documents.mark(lamp, off=True)
    assert documents.state_of(opened.store, opened.scope()) != before


async def test_a_switch_is_recorded_once_and_erased_with_its_document(opened: Workspace):
    lamp = entry(opened, "lamp.txt").id
    opened.documents.mark(lamp, off=True, tags=["Red"])
    opened.documents.mark(lamp, off=True)
    noted = [event for _, event in records.workspace_log(opened.store) if isinstance(event, DocumentMarked)]
    assert noted == [DocumentMarked(lamp, "local", True, ("Red",))]
    await opened.documents.remove([lamp])
    assert not [event for _, event in records.workspace_log(opened.store) if isinstance(event, DocumentMarked)]


async def test_only_who_may_change_a_document_switches_or_tags_it(opened: Workspace):
    await share_all_but_the_lamp(opened)
    reader = opened.for_principal(READER)
    for name in TEXTS:
        with pytest.raises(Missing):
            reader.documents.mark(entry(opened, name).id, off=True)
    assert not any(each.off for each in opened.documents.listing())


async def test_a_workspace_from_before_has_no_tags_and_everything_is_on(opened: Workspace):
    with opened.store.write() as connection:
        for statement in (*BEFORE_MARKS, "UPDATE facts SET value = '11' WHERE name = 'version'"):
            connection.exec_driver_sql(statement)
    with open_workspace(opened.path) as again:
        again.embedder = WordEmbedder()
        assert await found(again) == set(TEXTS)
        assert {(each.off, each.tags) for each in again.documents.listing()} == {(False, ())}
        again.documents.mark(entry(again, "lamp.txt").id, off=True, tags=["red"])
        assert entry(again, "lamp.txt").standing == "off"


# --- tags and other metadata ----------------------------------------------------------------------------------------


async def test_tags_are_set_added_and_removed_ignoring_case_and_found_at_once(opened: Workspace):
    lamp = entry(opened, "lamp.txt").id
    opened.documents.mark(lamp, tags=["Red, to check", "red"])
    assert entry(opened, "lamp.txt").tags == ("Red", "to check")
    assert await found(opened, SearchFilters(meta={"tag": "TO CHECK"})) == {"lamp.txt"}
    opened.documents.mark(lamp, add=["new"], remove=["RED"])
    assert entry(opened, "lamp.txt").tags == ("new", "to check")
    assert await found(opened, SearchFilters(meta={"tag": "red"})) == set()
    with pytest.raises(UserError):
        opened.documents.mark(lamp, tags=["x" * 101])


@pytest.mark.parametrize(
    ("meta", "names"),
    [
        ({"author": "muller"}, {"keeper.txt"}),
        ({"organisation": "harrow"}, {"boat.txt"}),
        ({"kind": "report"}, {"boat.txt"}),
        ({"period": "FY2018"}, {"boat.txt"}),
        ({"author": "Nobody"}, set()),
    ],
)
async def test_a_search_is_limited_by_author_organisation_kind_and_period(
    opened: Workspace, meta: dict[str, str], names: set[str]
):
    assert await found(opened, SearchFilters(meta=meta)) == names


async def test_a_question_is_limited_by_metadata_too(opened: Workspace):
    how = AskOptions(model=False, where=SearchFilters(meta={"author": "Müller"}))
    run = [run async for run, _ in opened.ask("What is said of Carrow Point?", how)][-1]
    assert {each.passage.doc_id for each in run.found} == {entry(opened, "keeper.txt").id}
    assert run.answer is not None and run.answer.left_out == LeftOut(2, 0)


async def test_tags_find_documents_in_the_list(opened: Workspace):
    opened.documents.mark(entry(opened, "lamp.txt").id, tags=["Überholt"])
    page = document_list.page(opened.store, opened.scope(), words="Überholt")
    assert [each.name for each in page.entries] == ["lamp.txt"]


# --- dates, and what is left out ------------------------------------------------------------------------------------


async def test_a_period_counts_as_a_date_and_undated_documents_are_counted(opened: Workspace):
    since = SearchFilters(since="2018-01-01", until="2018-12-31")
    assert await found(opened, since) == {"boat.txt"} and opened.documents.left_out(since) == LeftOut(2, 1)
    too = SearchFilters(since="2018-01-01", until="2018-12-31", undated=True)
    assert await found(opened, too) == {"boat.txt", "lamp.txt"} and opened.documents.left_out(too) == LeftOut(1, 0)


async def test_documents_that_somebody_may_not_read_or_that_are_off_are_never_counted(opened: Workspace):
    await share_all_but_the_lamp(opened)
    since = SearchFilters(since="2024-01-01")
    assert opened.documents.left_out(since) == LeftOut(2, 1)
    reader = opened.for_principal(READER)
    assert reader.documents.left_out(since) == LeftOut(1, 0)  # the lamp is undated, and hidden
    assert await found(opened, since, READER) == {"keeper.txt"}
    run = [run async for run, _ in reader.ask("Who is paid?", AskOptions(model=False, where=since))][-1]
    assert run.asked.left_out == LeftOut(1, 0)
    opened.documents.mark(entry(opened, "boat.txt").id, off=True)
    assert reader.documents.left_out(since) == LeftOut(0, 0) and opened.documents.left_out(since) == LeftOut(1, 1)


async def test_tags_of_a_hidden_document_are_neither_listed_nor_matched(opened: Workspace):
    await share_all_but_the_lamp(opened)
    opened.documents.mark(entry(opened, "lamp.txt").id, tags=["payroll"])
    reader = opened.for_principal(READER)
    assert not any(each.tags for each in reader.documents.listing())
    assert not document_list.page(reader.store, reader.scope(), words="payroll").total
    assert await found(opened, SearchFilters(meta={"tag": "payroll"}), READER) == set()
    assert reader.documents.left_out(SearchFilters(meta={"tag": "payroll"})) == LeftOut(2, 0)
