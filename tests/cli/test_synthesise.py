"""`assay synthesise` as a person has it: a forecast, progress, files, and a way back after it was stopped."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import forked
import pytest
from doubles.protocol import role_of
from doubles.synthesis_replies import synthesis_model
from terminal import NOTES, PAINT, Typed

from assay.cli import synthesise
from assay.cli.runs import CHAINED
from assay.core import private_files
from assay.core.synthesis import Brief, Pipeline
from assay.store.runs.history import history
from assay.workspace.facade import Workspace, open_workspace
from assay.workspace.forecast import LOCAL, REMOTE
from assay.workspace.synthesis_forecast import SynthesisForecast, forecast, lasting, rounded

pytestmark = pytest.mark.long

ROOT = Path(__file__).parent.parent.parent
FILES = {"account.html", "account.md", "account.json"}


def folder_in(words: str) -> Path:
    found = re.search(r"Written to (\S+):", words)
    assert found, words
    return Path(found[1])


def only_run(opened: Workspace) -> str:
    (one,) = history(opened.store, opened.principal.id, opened.scope())
    return one.id


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """A folder with a few notes, nowhere added yet."""
    folder = tmp_path / "notes"
    folder.mkdir()
    for name, words in NOTES.items():
        (folder / f"{name}.md").write_text(words, encoding="utf-8")
    return folder


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever is planned is large."""
    from assay.workspace.services.syntheses import Syntheses

    async def plan(*_: object) -> SynthesisForecast:
        return SynthesisForecast(3, 30, 30, 1_000, 2_000_000, 100_000, 3.5, 4_000.0)

    monkeypatch.setattr(Syntheses, "plan", plan)
    yield


# --- what comes of it -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pipeline", ["summary", "synthesis"])
def test_the_account_is_written_as_page_text_and_data(typed: Typed, noted: Workspace, tmp_path: Path, pipeline: str):
    done = typed("synthesise", "--pipeline", pipeline)
    assert done.code in (0, 3), done
    folder = folder_in(done.out)
    assert {path.name for path in folder.iterdir()} == FILES and folder.parent == tmp_path.resolve()
    data = json.loads((folder / "account.json").read_text(encoding="utf-8"))
    assert data["run"] == only_run(noted) and folder.name == f"assay-account-{data['run']}"
    assert data["brief"]["pipeline"] == pipeline and len(data["ledger"]) == 3
    assert "A model would add" in (folder / "account.html").read_text(encoding="utf-8")


def test_the_outcome_is_told_in_a_few_lines(typed: Typed, noted: Workspace):
    done = typed("synthesise")
    assert re.search(r"^[123] of 3 documents covered: \d+ questions?, \d+ quotations?, \d+ claims?\.", done.out), done
    assert re.search(r"It took \d+ s; the forecast was \d+ s\.", done.out)
    assert f"`assay trace {only_run(noted)}` shows every step." in done.out and len(done.out.splitlines()) < 20
    assert done.err.startswith("Forecast: 3 documents, no model, ")
    for line in ("Synthesis of 3 documents.", "Described 3 of 3: ", "Read 3 of 3: ", "Written: "):
        assert line in done.err


def test_at_a_terminal_the_stages_and_documents_are_drawn(typed: Typed, noted: Workspace):
    done = typed("synthesise", keys="")
    assert done.code in (0, 3) and "✓ describe: 3 of 3" in done.err and "D1 " in done.err
    assert "\x1b" not in done.out


def test_json_is_one_event_per_line_and_the_files_are_there_all_the_same(
    typed: Typed, noted: Workspace, tmp_path: Path
):
    done = typed("synthesise", "--json", "--out", "here")
    events = [json.loads(line) for line in done.out.splitlines()]
    assert [events[0]["event"], events[-1]["event"]] == ["Asked", "Answered"] and done.err == ""
    assert [event["seq"] for event in events] == list(range(len(events)))
    assert {path.name for path in (tmp_path / "here").iterdir()} == FILES


@pytest.mark.parametrize("keys", [None, ""])
def test_with_high_stakes_nothing_is_shown_before_a_reviewer_has_approved_it(
    typed: Typed, noted: Workspace, keys: str | None, tmp_path: Path
):
    done = typed("synthesise", "--no-model", "--stakes", "high", keys=keys)
    run = only_run(noted)
    held = typed("trace", run), typed("trace", run, "--json"), typed("resume", run), typed("runs")
    assert done.code == 5 and "The answer waits for a reviewer" in done.err and "passages weighed" in done.err
    for each in (done, *held):
        assert PAINT not in each.out + each.err and "in barrels from the works" not in each.out + each.err
    assert not list(tmp_path.glob("assay-account-*"))
    assert typed("review", run, "--approve").code == 0
    assert typed("resume", run).code == 0 and list(tmp_path.glob("assay-account-*"))


def test_quiet_prints_the_folder_alone(typed: Typed, noted: Workspace):
    done = typed("synthesise", "--quiet", "--out", "here")
    assert (done.out, done.err) == ("here\n", "")


def test_the_other_spelling_is_the_same_command(typed: Typed, noted: Workspace):
    assert typed("synthesize", "-q", "--out", "here").out == "here\n"
    assert "synthesize" not in typed("--help").out and "synthesise" in typed("--help").out


# --- which documents ------------------------------------------------------------------------------------------------


def test_files_that_are_named_are_added_and_only_they_are_read(typed: Typed, noted: Workspace, tmp_path: Path):
    for name in ("first", "second"):
        (tmp_path / f"{name}.md").write_text(f"# {name}\n\nThe {name} pump is cleaned every week.", encoding="utf-8")
    done = typed("synthesise", "second.md", "first.md", "--json", "--out", "here")
    brief = json.loads(done.out.splitlines()[0])["brief"]
    titles = {entry.id: entry.name for entry in noted.documents.listing()}
    assert [titles[doc] for doc in brief["documents"]] == ["second.md", "first.md"] and len(titles) == 5


def test_a_new_workspace_is_made_for_files_that_are_named(typed: Typed, notes: Path):
    assert typed("synthesise", notes, "-q", "--out", "here").code in (0, 3)


def test_a_file_with_the_content_of_a_known_document_stands_for_it(typed: Typed, noted: Workspace, notes: Path):
    typed("add", notes / "lamp.md", notes / "works.md", "--base", "default")
    twin = notes / "twin.md"
    twin.write_text((notes / "lamp.md").read_text(encoding="utf-8"), encoding="utf-8")
    done = typed("synthesise", twin, notes / "works.md", twin, "--json", "--out", "here")
    chosen = json.loads(done.out.splitlines()[0])["brief"]["documents"]
    titles = {entry.id: entry.title for entry in noted.documents.listing()}
    assert [titles[doc] for doc in chosen] == ["The lamp room", "The works"]


def test_files_that_cannot_be_read_are_named(typed: Typed, notes: Path):
    (notes / "empty.pdf").write_bytes(b"%PDF-1.4\n")
    done = typed("synthesise", notes)
    assert "Not read, and not included:\n  empty.pdf: " in done.err and "3 documents, no model" in done.err
    again = typed("synthesise", "--forecast")
    assert "  empty.pdf: " in again.err


def test_which_base_is_asked_for_where_there_are_several(typed: Typed, noted: Workspace, notes: Path):
    typed("add", notes / "lamp.md", "--base", "other")
    done = typed("synthesise")
    assert done.code == 2 and "Which knowledge base? Name it with --base. There is: default, other." in done.err
    assert typed("synthesise", "--base", "default", "-q", "--out", "here").code in (0, 3)
    assert typed("synthesise", "--base", "nowhere").code == 2


def test_one_document_can_be_summarised_and_not_compared(typed: Typed, notes: Path):
    done = typed("synthesise", notes / "lamp.md")
    assert done.code == 2 and "compares documents, and there is one" in done.err
    assert typed("synthesise", notes / "lamp.md", "--pipeline", "summary", "-q", "--out", "here").code in (0, 3)


# --- what it will take ----------------------------------------------------------------------------------------------


def test_the_forecast_alone_starts_nothing(typed: Typed, noted: Workspace, model, tmp_path: Path):
    from terminal import looked_up

    server = model(looked_up())
    done = typed("synthesise", "--forecast")
    assert done.code == 0 and re.search(r"^3 documents, \d+ requests, .* tokens, no charge", done.out)
    assert re.search(r"^read +\d+ +[\d,]+ +[\d,]+$", done.out, re.MULTILINE)
    assert not [name for name in server.counts if name] and not history(noted.store, noted.principal.id, noted.scope())
    told = json.loads(typed("synthesise", "--forecast", "--json").out)
    assert told["documents"] == 3 and sum(part["calls"] for part in told["parts"]) == told["calls"]


def test_what_is_large_is_asked_about_at_a_terminal(typed: Typed, noted: Workspace, large: None):
    done = typed("synthesise", "--no-model", keys="n\n")
    assert done.code == 130 and "That is much. Start it?" in done.err and "Not started." in done.err
    assert not history(noted.store, noted.principal.id, noted.scope())
    assert typed("synthesise", "--no-model", "--out", "here", keys="y\n").code in (0, 3)


def test_what_is_large_needs_a_yes_where_nobody_can_be_asked(typed: Typed, noted: Workspace, large: None):
    done = typed("synthesise", "--no-model")
    assert done.code == 2 and "This is a large synthesis: " in done.err and "Pass --yes to start it." in done.err
    assert typed("synthesise", "--no-model", "--yes", "-q", "--out", "here").code in (0, 3)


def test_a_ceiling_that_will_be_reached_is_said_before(typed: Typed, noted: Workspace, large: None):
    done = typed("synthesise", "--no-model", "--yes", "--max-tokens", "1000", "--max-cost", "1", "--max-seconds", "600")
    for ceiling in ("1,000 tokens", "$1", "10 min"):
        assert f"Note: the limit of {ceiling} will probably be reached" in done.err


@pytest.mark.parametrize(("flag", "says"), [("llm", "needs a language model"), ("set", "and that is `none`")])
def test_a_reranker_that_is_not_there_is_said_before_anything_is_done(
    typed: Typed, noted: Workspace, flag: str, says: str
):
    done = typed("synthesise", "--rerank", flag)
    assert done.code == 2 and says in done.err and not history(noted.store, noted.principal.id, noted.scope())


# --- with a model ---------------------------------------------------------------------------------------------------


def test_what_it_took_is_told_beside_what_was_forecast(typed: Typed, noted: Workspace, model):
    server = model(SimpleNamespace(answer=synthesis_model()))
    done = typed("synthesise", "--audience", "plain", "--out", "here", "--yes")
    assert done.code in (0, 3), done
    took = re.search(
        r"It took (\d+) requests · [\d,]+ tokens · \d+ s; the forecast was (\d+) requests, .*, no charge", done.out
    )
    assert took and int(took[1]) == sum(count for name, count in server.counts.items() if name), done.out
    assert int(took[2]) / 3 < int(took[1]) < int(took[2]) * 3
    data = json.loads(Path("here/account.json").read_text(encoding="utf-8"))
    assert data["models"] == ["scripted"] and [each["audience"] for each in data["translations"]] == ["plain"]


def test_an_endpoint_that_fails_leaves_a_synthesis_that_asks_nothing_twice(typed: Typed, noted: Workspace, model):
    def broken(text: str, schema: object) -> NoReturn:
        raise AssertionError("down")

    first = model(SimpleNamespace(answer=synthesis_model(narrate=broken)))
    done = typed("synthesise", "--out", "here", "--max-tokens", "900000", "--yes")
    assert done.code == 1 and "Traceback" not in done.err and not Path("here").exists(), done
    assert f"`assay resume {only_run(noted)} --out here --max-tokens 900000` carries it on" in done.err
    again = model(SimpleNamespace(answer=synthesis_model()))
    assert typed("resume", only_run(noted), "--out", "here", "-q").out == "here\n"
    before, after = ({role_of(request)[1] for request in server.requests} for server in (first, again))
    assert {"read", "relate"} <= before and "narrate" in after and not {"read", "relate"} & after


def test_nothing_is_sent_to_another_machine_without_consent(
    typed: Typed, noted: Workspace, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("ASSAY_LLM_BASE_URL", "https://models.example/v1")
    monkeypatch.setenv("ASSAY_LLM_MODEL", "large")
    for flags in ((), ("--forecast",)):
        done = typed("synthesise", *flags)
        assert done.code == 2 and "would be sent to models.example" in done.err, done
    assert typed("synthesise", keys="n\n").code == 2 and not history(noted.store, noted.principal.id, noted.scope())
    assert typed("synthesise", "--no-model", "-q", "--out", "here").code in (0, 3)


# --- where it is written --------------------------------------------------------------------------------------------


def test_a_folder_with_other_files_is_refused_before_anything_is_done(typed: Typed, noted: Workspace, tmp_path: Path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("Mine.", encoding="utf-8")
    done = typed("synthesise", "--out", "full")
    assert done.code == 2 and "'full' has other files in it" in done.err
    assert not history(noted.store, noted.principal.id, noted.scope()) and len(list((tmp_path / "full").iterdir())) == 1
    assert typed("synthesise", "--out", "full/thesis.txt").code == 2


def test_no_account_is_written_over_another(typed: Typed, noted: Workspace):
    assert typed("synthesise", "-q", "--out", "here").code in (0, 3)
    before = Path("here/account.json").read_text(encoding="utf-8")
    assert typed("synthesise", "-q", "--out", "here").code == 2
    assert Path("here/account.json").read_text(encoding="utf-8") == before


def test_an_account_that_cannot_be_written_is_not_lost(
    typed: Typed, noted: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "file").write_text("", encoding="utf-8")
    done = typed("synthesise", "-q", "--out", "file/below")
    assert done.code == 2 and "The account cannot be written to 'file/below'" in done.err, done
    assert f"`assay resume {only_run(noted)} --out DIR` writes it elsewhere" in done.err
    assert typed("resume", only_run(noted), "-q", "--out", "here").out == "here\n"


def test_a_half_written_file_is_never_left(
    noted: Workspace, typed: Typed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    typed("synthesise", "-q", "--out", "here")
    whole = {name: Path("here", name).read_bytes() for name in FILES}

    def torn(path: Path) -> NoReturn:
        path.write_text("half of ")
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(private_files, "create_private", torn)
        assert typed("resume", only_run(noted), "-q", "--out", "here").code == 2
    assert {name: Path("here", name).read_bytes() for name in FILES} == whole
    assert not list(Path("here").glob(".*"))


# --- stopped, and carried on ----------------------------------------------------------------------------------------


def test_a_finished_synthesis_is_written_again_by_resume(typed: Typed, noted: Workspace):
    first = typed("synthesise", "--out", "one")
    again = typed("resume", only_run(noted), "--out", "two")
    assert again.code == first.code and f"Written to {Path('two').resolve()}:" in again.out
    for name in FILES:
        assert Path("one", name).read_bytes() == Path("two", name).read_bytes()
    assert typed("resume", only_run(noted), "-q", "--out", "two").code == first.code  # the same run may write there


def test_ctrl_c_names_the_run_and_the_way_back(typed: Typed, noted: Workspace, monkeypatch: pytest.MonkeyPatch):
    from assay.synthesis import coverage, pipeline

    async def pressed(run, context):
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(0.1)  # so that it is heard
        async for event in coverage.cover(run, context):
            yield event

    with monkeypatch.context() as patched:
        patched.setattr(pipeline.Stage.COVER, "_value_", pressed)
        done = typed("synthesise", "--out", "here", "--max-seconds", "5000")
    run = only_run(noted)
    assert done.code == 130 and f"`assay resume {run} --out here --max-seconds 5000.0` carries it on" in done.err, done
    assert not Path("here").exists()
    assert typed("resume", run, "-q", "--out", "here").out == "here\n"
    assert {path.name for path in Path("here").iterdir()} == FILES


@pytest.mark.kill
def test_a_synthesis_that_was_killed_is_carried_on_to_the_same_account(notes: Path, tmp_path: Path):
    environment = {**os.environ, "ASSAY_WORKSPACE": str(tmp_path / "workspace")}
    words = [
        sys.executable,
        "-m",
        "assay.cli.main",
        "synthesise",
        str(notes),
        "--json",
        "--out",
        str(tmp_path / "never"),
    ]
    process = forked.Process(words, stdout=forked.PIPE, stderr=forked.DEVNULL, env=environment, text=True)
    for line in process.stdout:
        if '"PassagesChosen"' in line:
            process.kill()
            break
    process.wait()
    time.sleep(0.1)
    with open_workspace(tmp_path / "workspace") as opened:
        run = only_run(opened)
        assert not opened.questions.run(run).delivered
    out = tmp_path / "here"
    done = forked.run(
        [sys.executable, "-m", "assay.cli.main", "resume", run, "-q", "--out", out], env=environment, text=True
    )
    assert done.returncode in (0, 3), done.stderr
    assert {path.name for path in out.iterdir()} == FILES


def test_runs_and_trace_know_a_synthesis(typed: Typed, noted: Workspace):
    typed("synthesise", "-q", "--focus", "the lamp room", "--out", "here")
    run = only_run(noted)
    assert re.search(rf"^{run}  .*  \[3 documents\] the lamp room$", typed("runs").out, re.MULTILINE)
    assert json.loads(typed("runs", "--json").out)[0]["documents"] == 3
    lines = typed("trace", run).out
    assert "synthesis of 3 documents · for expert · no model" in lines and CHAINED in lines
    assert re.search(r"  PassagesChosen +\S+ · ", lines) and re.search(r"  InsightsDrawn +\S+ · ", lines)


# --- what the documents say -----------------------------------------------------------------------------------------


def ten(pipeline: Pipeline, *, small: bool = False, has_model: bool = True) -> SynthesisForecast:
    return forecast(
        Brief(pipeline, tuple(f"d{n}" for n in range(10))),
        lengths=[20_000] * 10,
        small=small,
        has_model=has_model,
        price=lambda tokens_in, tokens_out: None,
        speed=LOCAL if small else REMOTE,
    )


def figures() -> list[str]:
    """The table of costs as the documents should have it."""
    kinds = {
        "at a provider": {"small": False},
        "small, on your own processor": {"small": True},
        "none": {"has_model": False},
    }
    rows: list[str] = []
    for name, how in kinds.items():
        for pipeline in Pipeline:
            found = ten(pipeline, **how)
            tokens = rounded(found.tokens_in + found.tokens_out)
            cells = (
                f"`{pipeline}`",
                name,
                found.questions,
                rounded(found.calls),
                f"{tokens:,}",
                lasting(found.seconds),
            )
            rows.append(f"| {' | '.join(map(str, cells))} |")
    return rows


def test_the_documents_say_what_ten_documents_cost():
    page = (ROOT / "docs/how-to/synthesise.md").read_text(encoding="utf-8")
    missing = [row for row in figures() if row not in page]
    assert not missing, "docs/how-to/synthesise.md should have:\n" + "\n".join(figures())
    said = " ".join(page.split())
    assert f"reads {REMOTE.read:,.0f} and writes {REMOTE.write:.0f} tokens a second, {REMOTE.at_once} requests" in said
    assert f"reads {LOCAL.read:.0f} and writes {LOCAL.write:.0f}, one at a time" in said and LOCAL.at_once == 1


def test_the_help_says_what_ten_documents_cost_and_when_to_use_which():
    told = " ".join((synthesise.synthesise.__doc__ or "").split())
    for pipeline in Pipeline:
        found = ten(pipeline)
        figure = f"about {rounded(found.calls)} requests and {rounded(found.tokens_in + found.tokens_out):,} tokens"
        assert f"{pipeline} {figure}" in told, f"the help of `assay synthesise` should say: {pipeline} {figure}"
    assert "quick factual digest" in told and "deep comparison" in told


def test_the_program_still_starts_without_what_a_synthesis_needs():
    code = "import sys; import assay.cli.main; print(sorted(m for m in sys.modules if m.startswith('assay.synth')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_the_choices_of_the_flags_are_those_of_the_values():
    from assay.workspace.services import syntheses as synthesising

    assert tuple(synthesise.Rerank) == synthesising.RERANKERS and set(synthesise.OTHERS) < set(synthesising.RERANKERS)
