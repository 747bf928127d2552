"""Figures in the documents are those of result files, and the benchmarks measure what they say."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import cite  # noqa: E402
import claims  # noqa: E402
import faults  # noqa: E402
import ingest  # noqa: E402
import lines  # noqa: E402
import measured  # noqa: E402
import peer  # noqa: E402
import quality  # noqa: E402
import query  # noqa: E402
import report  # noqa: E402
import result_file  # noqa: E402
import rule_trials  # noqa: E402
import rules  # noqa: E402
import verdict  # noqa: E402
from doubles import HttpReply, supported  # noqa: E402

from assay.core.types import Document, Verdict  # noqa: E402
from assay.evaluate.runner import BeirCollection, BeirDocument  # noqa: E402

# --- figures --------------------------------------------------------------------------------------------------------


def test_the_page_has_the_figures_of_the_result_files_and_no_others():
    page = report.PAGE.read_text(encoding="utf-8")
    assert page == report.whole_page(report.read_results()), "run `make docs`"
    page = report.KEY_PAGE.read_text(encoding="utf-8")
    assert page == report.key_page(page, report.read_results()), "run `make docs`"
    assert len(lines.WORD.findall(page)) <= 1_500


def test_every_benchmark_is_on_the_page():
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert not [name for name in report.benches() if f"| `bench/{name}.py" not in page]


def test_a_result_has_its_command_without_the_file_it_is_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "argv", ["bench/claims.py", "--data", "a b.jsonl", "--out", "x.json", "--seed", "2"])
    result_file.write_result(tmp_path / "x.json", {"a": {"b": 0.123456}}, {"peer": "1.2"}, {"other": "no wheel"})
    result = json.loads((tmp_path / "x.json").read_text())
    assert result["command"] == "bench/claims.py --data 'a b.jsonl' --seed 2"
    assert result["figures"] == {"a": {"b": 0.1235}} and result["missing"] == {"other": "no wheel"}
    assert result["versions"]["peer"] == "1.2" and "assay" in result["versions"] and "cores" in result["machine"]


def test_what_a_benchmark_measures_is_there():
    assert set(measured.MEASURED) >= set(report.benches())
    assert not [part for bench in measured.MEASURED for part in measured.code_of(bench) if not (ROOT / part).exists()]


def test_a_result_that_is_older_than_its_code_is_marked_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    source = tmp_path / "src" / "assay" / "index"
    source.mkdir(parents=True)
    (source / "a.py").write_text("1")
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "growth.py").write_text("1")
    monkeypatch.setattr(measured, "ROOT", tmp_path)
    monkeypatch.setattr(measured, "MEASURED", {"growth": ["index"]})
    monkeypatch.setattr(sys, "argv", ["bench/growth.py"])
    out = tmp_path / "growth.json"

    def read(*, changes: str = "", partly: bool = False, writes: bool = True) -> dict:
        measured.digest.cache_clear()
        (source / "a.py").write_text(changes or "1")
        if writes:
            result_file.write_result(out, {"a": {"b": 1}}, partly=partly)
        return json.loads(out.read_text())

    assert not measured.changed(read()) and "before a change" not in report.section("growth", read())
    older = read(changes="2", writes=False)
    assert measured.changed(older) == ["src/assay/index"]
    assert "**Measured before a change of its code**: `src/assay/index`." in report.section("growth", older)
    assert measured.changed(read(changes="2", partly=True)) == ["src/assay/index"], "some figures are of an earlier run"
    assert not measured.changed(read(changes="2"))
    assert measured.changed({"bench": "growth"}) == ["bench/growth.py", "src/assay/index"], (
        "it does not say what it measured"
    )


def test_nested_figures_become_tables():
    shown = list(report.tables({"n": 3, "set": {"ours": {"x": 0.5}, "theirs": {"x": 1.0, "y": 2}}}))
    assert shown[0] == "| | value |\n|---|---:|\n| n | 3 |"
    assert shown[1] == "set:\n\n| | x | y |\n|---|---:|---:|\n| ours | 0.5 | – |\n| theirs | 1 | 2 |"


# --- peers ----------------------------------------------------------------------------------------------------------


def test_a_peer_that_is_not_installed_says_so(tmp_path: Path):
    with pytest.raises(peer.PeerFailed) as failed:
        peer.run_peer("peer_search.py", "chroma", {}, tmp_path / "python")
    assert "make bench" in failed.value.reason


def test_a_peer_that_fails_gives_its_reason(tmp_path: Path):
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho trace >&2\necho 'ImportError: no wheel' >&2\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(peer.PeerFailed) as failed:
        peer.run_peer("peer_search.py", "chroma", {}, broken)
    assert failed.value.reason == "ImportError: no wheel"


def test_peers_that_are_not_there_are_named_with_the_reason(tmp_path: Path):
    versions: dict[str, str] = {}
    missing: dict[str, str] = {}
    assert query.beside(20, 2, 5, tmp_path / "python", versions, missing) == []
    assert {name.partition(",")[0] for name in missing} == set(peer.SEARCHERS)
    assert all("make bench" in why for why in missing.values())


def test_documents_are_added_with_vectors_that_cost_nothing(tmp_path: Path):
    folder = tmp_path / "documents"
    folder.mkdir()
    ingest.write_documents(folder, 3, [])
    row = ingest.add_alone(folder, tmp_path / "workspace")
    assert row["pieces"] >= 3 and row["seconds"] > 0 and row["disk MB"] > 0


def test_a_fault_comes_once_and_with_the_third_request_of_a_run():
    faulty = faults.Faulty("500, once")
    tool = {"type": "function", "function": {"name": "search", "parameters": {"type": "object", "properties": {}}}}
    request = {"messages": [{"role": "user", "content": "When?"}], "tools": [tool]}
    faulty({"messages": [{"role": "user", "content": "What can you do?"}]})  # before the run
    replies = [faulty(request) for _ in range(4)]
    assert [isinstance(each, HttpReply) for each in replies] == [False, False, True, False]
    assert faulty.count == 4 and faulty.reached.is_set()


# --- claims ---------------------------------------------------------------------------------------------------------


def labelled(folder: Path) -> list[claims.ClaimCase]:
    rows = [
        {"id": "1", "claim": "The dam is high.", "evidence": ["The dam is high.", "It rains."], "label": "SUPPORT"},
        {"id": "2", "claim": "The moon is made of cheese.", "evidence": ["The dam is high."], "label": "NEUTRAL"},
        {"id": "3", "claim": "The dam is low.", "evidence": ["No.", "The dam is high."], "label": "REFUTE", "rationale": [1]},
    ]  # fmt: skip
    file = folder / "set.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return claims.read_file(file)


def test_claims_with_sentences_as_evidence_are_read_like_those_with_passages(tmp_path: Path):
    found = labelled(tmp_path)
    assert [case.label for case in found] == [Verdict.supported, Verdict.unsupported, Verdict.contradicted]
    assert found[2].evidence[0].passage.text == "The dam is high."
    assert [claims.overlap(case) >= 0.6 for case in found] == [True, False, False]


def test_shares_of_claims_that_reach_the_reader(tmp_path: Path):
    assert claims.shares(labelled(tmp_path), [True, True, False]) == {
        "true kept": 1.0,
        "false passed": 0.5,
        "partly true passed": 0.0,
    }


async def test_our_rows_are_there_when_no_peer_is(tmp_path: Path):
    missing: dict[str, str] = {}
    rows = await claims.measured(claims.LabelledSet("s", labelled(tmp_path)), tmp_path / "python", {}, missing)
    assert set(missing) == set(claims.PEERS)
    assert rows["Assay, judge oracle"]["true kept"] == 1.0 and rows["Assay, judge oracle"]["false passed"] == 0.0


# --- cite -----------------------------------------------------------------------------------------------------------


@pytest.mark.long
async def test_with_an_honest_judge_only_what_is_true_reaches_the_reader():
    asked = cite.questions(3)
    assert cite.shares(await cite.ours(cite.honest, asked), "0badf00d") == {
        "true shown": 1.0,
        "false shown": 0.0,
        "foreign shown": 0.0,
        "altered shown": 0.0,
    }
    lied = cite.shares(await cite.ours(supported(), asked), "0badf00d")
    assert lied["true shown"] == 1.0 and lied["foreign shown"] == lied["altered shown"] == 0.0


def test_the_writer_reads_the_prompts_of_peers():
    texts = list(cite.documents().values())
    context = "\n\n".join(f"pqac-{place:08x}: {text}\nFrom x, 2024" for place, text in enumerate(texts, 1))
    said = cite.write_for_paper_qa(f"Context:\n\n{context}\n\n---\n\nQuestion: {cite.questions(2)[1]}\n\n")
    assert "The Brackwell works was opened in 1961 by Idris Holt. (pqac-00000002)" in said
    shown = "\n".join(f"Source {place}:\n{text}\n" for place, text in enumerate(texts, 1))
    begun = "Below are several numbered sources of information:"
    said = cite.write_for_llama_index(f"{begun}\n------\n{shown}\n------\nQuery: {cite.questions(2)[1]}\nAnswer: ")
    assert "opened in 1961 by Idris Holt. [2]" in said and "[99]" in said


# --- quality --------------------------------------------------------------------------------------------------------


def test_a_sample_has_every_labelled_document_of_its_queries():
    documents = tuple(BeirDocument(str(n), "", f"text {n}") for n in range(20))
    whole = BeirCollection("c", documents, {"a": "x", "b": "y"}, {"a": {"3": 1, "4": 0}, "b": {"7": 1, "8": 1}})
    found = quality.sample(whole, queries=1, documents=5, seed=1)
    (query,) = found.queries
    kept = {each.id for each in found.documents}
    assert len(kept) == 5 and {doc for doc, grade in whole.judgements[query].items() if grade} <= kept
    assert quality.sample(whole, 0, 0, 1).documents == documents


def test_pieces_and_pages_keep_their_owner():
    pieces = quality.cut({"a": "one " * 250, "b": "two"})
    assert list(pieces.owners) == ["a", "a", "b"] and pieces.texts[2] == "two"
    document = Document("d", "b", "file:///x/R.pdf", "", "", "firstsecond", pages=(0, 5), kind="pdf")
    assert quality.pages_of(document) == {("R", 1): "first", ("R", 2): "second"}


async def test_documents_are_measured_for_every_system_that_ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    class Flat:
        async def passages(self, texts: list[str]) -> np.ndarray:
            return np.ones((len(texts), 4), np.float32)

        queries = passages

    def found(script: str, name: str, task: dict, python: Path) -> dict:
        if name != "chroma":
            raise peer.PeerFailed("no wheel")
        assert np.load(task["vectors"]).shape == (2, 4)
        return {"rankings": [[1, 0]], "versions": {"chromadb": "9"}}

    monkeypatch.setattr(quality, "BundledEmbedder", Flat)
    monkeypatch.setattr(quality, "run_peer", found)
    peers = quality.Peers(tmp_path, tmp_path)
    assert await peers.rank(quality.Pieces(["a", "b"], ["x", "y"]), ["q"]) == {"chroma": [["b", "a"]]}
    assert peers.versions == {"chromadb": "9"} and peers.missing["txtai"] == "no wheel"


# --- verdict --------------------------------------------------------------------------------------------------------


def test_a_set_that_one_search_answers_is_told_that_the_loop_is_not_worth_it():
    def side(tokens: int, right: int) -> list[verdict.Graded]:
        cases = [verdict.Case("s", str(n), f"Question {n}?", "", {}) for n in range(40)]
        costs = [verdict.Cost(1, tokens, 0, 0, float(n < right), n < right) for n in range(40)]
        return [verdict.graded(case, cost) for case, cost in zip(cases, costs, strict=True)]

    easy = verdict.compare(side(1000, 38), side(5000, 38))
    assert "is not shown to be worth its cost" in verdict.verdict(easy, verdict.ONE_SHOT, verdict.LOOP)
    hard = verdict.compare(side(1000, 10), side(5000, 35))
    assert "not shown" not in verdict.verdict(hard, verdict.ONE_SHOT, verdict.LOOP)
    assert verdict.rows(hard)["difference"]["right"] == 0.625


# --- word rules -----------------------------------------------------------------------------------------------------


def test_a_switch_reaches_a_function_where_it_was_imported_and_gives_it_back():
    from assay.ingest.formats import detect

    text = "The ferry leaves the harbour at noon, and it is the last one of the day for those who live on the island."
    with rules.switched_off({"assay.language.identify.identify_language": rules.nothing(None)}):
        assert detect.identify_language(text) is None
    assert detect.identify_language(text) == "en"


@pytest.mark.parametrize("group", rules.groups(), ids=lambda group: group.name)
def test_every_group_of_rules_exists_and_is_measured_or_says_what_would_measure_it(group: rules.Group):
    count, _ = rules.size(group.files)
    assert count and set(group.trials) <= set(rule_trials.TRIALS)
    assert bool(group.trials) != bool(group.unmeasured)
    with rules.switched_off(group.off):
        pass


def test_a_group_is_compared_on_the_same_questions():
    found = rules.paired([{"R@5": 1.0}, {"n": 0.0}, {"R@5": 0.5}], [{"R@5": 0.5}, {"n": 1.0}, {"R@5": 0.5}], ("R@5",))
    assert found == {"R@5": ([1.0, 0.5], [0.5, 0.5])}
    assert rules.compared(*found["R@5"])["change"].startswith("-0.250 (-0.500")


def test_labels_name_files_and_say_what_these_state():
    labels = json.loads(rule_trials.LABELS.read_text(encoding="utf-8"))
    assert len({each["file"] for each in labels}) == len(labels) >= 40
    assert all(set(each) == {"file", "title", "authors", "date", "organisation"} for each in labels)


def test_a_measure_may_shrink_and_grows_only_for_a_reason():
    kept = {"lines": {"most": 10}, "patterns": {"most": 2, "raised": {"reads dates": 1}}}
    assert not lines.grown({"lines": 9, "patterns": 3}, kept)
    assert lines.grown({"lines": 10, "patterns": 4}, kept) == ["patterns: 4, but at most 3"]
