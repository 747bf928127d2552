"""Renders a run's answer for printing: in the requested format, without terminal control characters."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from assay.cli.options import as_json, plain, wait_for

if TYPE_CHECKING:
    from assay.core.run import Run
    from assay.workspace.facade import Workspace


class OutputFormat(StrEnum):
    text = "text"
    markdown = "markdown"
    html = "html"
    json = "json"
    bibtex = "bibtex"


def render_answer(run: Run, opened: Workspace, format: OutputFormat) -> str:
    """The run's answer in the requested format."""
    from assay.answer import render
    from assay.answer.claim_details import show_workings
    from assay.core.codec import to_json

    answer = run.answer
    assert answer is not None
    cited = render.citations(answer, run.evidence, opened.document)
    match format:
        case OutputFormat.markdown:
            return plain(render.as_markdown(answer, cited, show_workings(answer, run.evidence, opened.document)))
        case OutputFormat.html:
            return plain(render.as_html(answer, cited, show_workings(answer, run.evidence, opened.document)))
        case OutputFormat.bibtex:
            return plain(render.as_bibtex(cited))
        case OutputFormat.json:
            data = render.as_json(answer, cited)
            for each in data["citations"]:
                each["boxes"] = to_json(wait_for(opened.boxes(each["document"], each["start"], each["end"])))
            return as_json({"run": run.id, **data})
        case _:
            return plain(render.as_text(answer, cited))
