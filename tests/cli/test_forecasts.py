"""`--forecast` says what it would take and does nothing else."""

from __future__ import annotations

import json
from pathlib import Path

from terminal import Typed

from assay.workspace.facade import Workspace


def test_a_question_is_forecast_and_not_asked(typed: Typed, noted: Workspace):
    done = typed("ask", "How tall is the tower?", "--no-model", "--forecast")
    assert done.code == 0 and done.out.startswith("Forecast (a guess: nothing like it was done here yet): ")
    assert "No runs" in typed("runs").out or typed("runs").out.strip() in {"", "Nothing was asked yet."}
    told = json.loads(typed("ask", "How tall is the tower?", "--no-model", "--forecast", "--json").out)
    assert told["kind"] == "ask" and told["foreseen"]["counts"]["documents"] > 0


def test_files_are_forecast_and_not_added(typed: Typed, noted: Workspace, tmp_path: Path):
    (tmp_path / "new.txt").write_text("A new note. " * 500)
    before = len(noted.documents.listing())
    done = typed("add", tmp_path / "new.txt", "--forecast")
    assert done.code == 0 and "1 new file; about " in done.out
    assert len(noted.documents.listing()) == before
