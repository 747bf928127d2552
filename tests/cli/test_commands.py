"""Every command as a person types it, in a process of its own, on the sample corpus."""

from __future__ import annotations

import json
from pathlib import Path

import pytest


@pytest.mark.long
def test_add_prints_one_object_with_a_line_per_file(assay, corpus: Path, tmp_path: Path):
    (tmp_path / "twin.md").write_bytes((corpus / "monthly-report-2025-02.md").read_bytes())
    names = ("monthly-report-2025-02.md", "suppliers.xlsx", "field-notes-to-follow.txt")
    files = [*(corpus / name for name in names), corpus / "inspection-record-brackwell-1998.pdf", tmp_path / "twin.md"]
    done = assay("add", *files, "--json")
    report = json.loads(done.stdout)
    by_name = {Path(file["path"]).name: file for file in report["files"]}
    assert {"path", "status", "pages", "characters", "passages", "why"} <= by_name["suppliers.xlsx"].keys()
    assert by_name["field-notes-to-follow.txt"]["status"] == "empty"
    assert by_name["inspection-record-brackwell-1998.pdf"]["status"] == "scanned"
    assert by_name["twin.md"]["outcome"] == "duplicate"
    assert all(file["characters"] > 0 for file in report["files"] if file["status"] == "read")
    assert all(file["why"] for file in report["files"] if file["status"] != "read")
    assert report["unreadable"] == 2 and done.returncode == 0


@pytest.mark.long
def test_standard_input_is_a_document_too(assay):
    done = assay("add", "-", "--name", "memo.md", stdin=b"# Memo\n\nThe spare key hangs behind the boiler.\n")
    assert done.returncode == 0
    hits = json.loads(assay("search", "where is the spare key", "--json").stdout)
    assert "behind the boiler" in hits[0]["text"] and hits[0]["title"] == "Memo"


@pytest.mark.long
def test_search_can_be_limited(assay, filled):
    def search(*limits: str) -> list[dict]:
        return json.loads(assay("search", "turbidity alarm", "--json", "--workspace", filled.path, *limits).stdout)

    assert {Path(hit["path"]).suffix for hit in search("--type", "pdf")} == {".pdf"}
    assert {Path(hit["path"]).name for hit in search("--source", "monthly-report")} <= {
        f"monthly-report-2025-0{month}.md" for month in (2, 3, 4)
    }
    dates = {entry.uri: entry.date for entry in filled.documents.listing()}
    recent = search("--since", "2025-05")
    assert recent and all((dates[hit["path"]] or "") >= "2025" for hit in recent)
    assert not {hit["path"] for hit in recent} & {
        uri for uri, date in dates.items() if date and "2025" < date < "2025-05"
    }
    assert search("--type", "md") == search("--type", "markdown") != []


@pytest.mark.long
def test_ask_answers_with_quotations_that_stand_in_their_files(assay, filled):
    done = assay("ask", "How much water can Brackwell treat in a day?", "--format", "json", "--workspace", filled.path)
    answer = json.loads(done.stdout)
    assert "38,000 cubic metres" in " ".join(
        claim["quote"]["text"] for block in answer["blocks"] for claim in block["claims"]
    )
    for cited in answer["citations"]:
        document = filled.documents.get(cited["document"])
        assert document and document.text[cited["start"] : cited["end"]] == cited["quote"]


@pytest.mark.long
def test_a_quotation_from_a_pdf_comes_with_its_boxes(assay, filled):
    done = assay("ask", "How long is CCTV footage stored?", "-s", "retention", "-f", "json", "--workspace", filled.path)
    pages = [each for each in json.loads(done.stdout)["citations"] if each["path"].endswith(".pdf")]
    assert pages and all(each["page"] and each["boxes"] for each in pages)


@pytest.mark.long
def test_events_come_one_per_line_and_the_last_is_the_answer(assay, filled):
    done = assay("ask", "Who supplies the coagulant?", "--json", "--workspace", filled.path)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [events[0]["event"], events[-1]["event"]] == ["Asked", "Answered"]
    assert [event["seq"] for event in events] == list(range(len(events)))


@pytest.mark.long
def test_what_the_documents_do_not_say_is_said_with_what_was_tried(assay, filled):
    done = assay("ask", "What is the boiling point of tungsten?", "--verbose", "--workspace", filled.path)
    assert done.returncode == 4
    assert "Not found in your documents." in done.stdout and "Searched for:" in done.stdout
    assert "inspection-record-brackwell-1998.pdf" in done.stdout


@pytest.mark.long
def test_a_run_is_listed_and_traced(assay, filled):
    assay("ask", "How much water can Brackwell treat in a day?", "--workspace", filled.path, "-q")
    (run,) = json.loads(assay("runs", "--json", "--workspace", filled.path).stdout)
    trace = json.loads(assay("trace", run["run"], "--json", "--workspace", filled.path).stdout)
    assert trace["whole"] and [record["seq"] for record in trace["records"]] == list(range(len(trace["records"])))


@pytest.mark.long
def test_backup_and_restore_give_the_same_answers(assay, filled, tmp_path: Path):
    assert assay("backup", tmp_path / "all.tar.gz", "--workspace", filled.path).returncode == 0
    assert assay("restore", tmp_path / "all.tar.gz", "--workspace", tmp_path / "second").returncode == 0
    query = ("search", "CCTV footage", "--json", "--workspace")
    assert assay(*query, tmp_path / "second").stdout == assay(*query, filled.path).stdout
    again = assay("restore", tmp_path / "all.tar.gz", "--workspace", tmp_path / "second")
    assert again.returncode == 2 and "not empty" in again.stderr


@pytest.mark.long
def test_a_workspace_tells_about_itself_and_can_be_deleted(assay, filled):
    facts = json.loads(assay("workspace", "info", "--json", "--workspace", filled.path).stdout)
    assert facts["documents"] == 20 and facts["unreadable"] == 2 and facts["bytes"]["state.db"] > 0
    assert assay("workspace", "delete", "--yes", "--workspace", filled.path).returncode == 0
    assert not filled.path.exists()


def test_sources_show_and_remove(assay, filled):
    rows = json.loads(assay("sources", "--json", "--workspace", filled.path).stdout)
    assert len(rows) == 22 and all(row["why"] for row in rows if row["status"] != "read")
    shown = json.loads(assay("show", "records-retention-policy.pdf", "--json", "--workspace", filled.path).stdout)
    assert shown["date"] and shown["sections"] and len(shown["pages"]) == 2
    assert assay("remove", "suppliers.xlsx", "--workspace", filled.path).returncode == 0
    assert "suppliers.xlsx" not in assay("sources", "--workspace", filled.path).stdout


def test_config_shows_every_setting_with_its_origin(assay):
    lines = json.loads(assay("config", "show", "--json", ASSAY_POOL="77").stdout)
    assert {"name": "pool", "value": "77", "origin": "environment ASSAY_POOL"}.items() <= next(
        line for line in lines if line["name"] == "pool"
    ).items()


def test_help_and_completion_are_there(assay):
    assert "Answers questions from your own documents" in assay("--help").stdout
    assert "--install-completion" in assay("--help").stdout
    assert assay("--version").stdout.startswith("assay ")


@pytest.mark.long
def test_doctor_offline_finds_that_nothing_leaves(assay, tmp_path: Path):
    done = assay("doctor", "--offline", "--json")
    checks = {line["check"]: line["ok"] for line in json.loads(done.stdout)}
    assert checks["a whole round"] is True and checks["nothing leaves this machine"] is True


@pytest.mark.long
def test_evaluate_prints_one_json_object_last(assay, tmp_path: Path):
    data = tmp_path / "tiny"
    (data / "qrels").mkdir(parents=True)
    docs = {
        "a": "The ferry leaves at noon.",
        "b": "Bread is baked at dawn.",
        "c": "The ferry is called Swallow. Swallow is blue.",
    }
    (data / "corpus.jsonl").write_text("\n".join(json.dumps({"_id": key, "text": text}) for key, text in docs.items()))
    (data / "queries.jsonl").write_text(json.dumps({"_id": "1", "text": "When does the ferry leave?"}) + "\n"
                                        + json.dumps({"_id": "2", "text": "nobody judged this"}))  # fmt: skip
    (data / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\n1\ta\t1\n")
    figures = json.loads(
        assay("evaluate", "retrieval", "--data", data, "--cache", tmp_path, "--json").stdout.splitlines()[-1]
    )
    assert figures.keys() == {"ndcg@10", "r@5", "r@100", "all@5", "intervals", "n", "queries", "seconds"}
    assert figures["queries"] == 1 and figures["ndcg@10"] == 1.0 and figures["intervals"]["ndcg@10"] == [1.0, 1.0]
    hops = json.loads(
        assay("evaluate", "multihop", "--data", data, "--cache", tmp_path, "--json").stdout.splitlines()[-1]
    )
    shares = {"r@5", "r@10", "all@5", "all@10", "intervals", "n"}
    assert hops["run"].keys() == hops["one_search"].keys() == shares and hops["searches"] >= 1
    assert hops["verdict"].startswith("For 100 % of your questions one search is enough.")
