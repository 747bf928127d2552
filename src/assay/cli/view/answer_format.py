"""Renders a run's answer for printing: in the requested format, without control characters of its own."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from assay.cli.options import as_json, console, plain, wait_for

if TYPE_CHECKING:
    from assay.core.run import Run
    from assay.workspace.facade import Workspace


class OutputFormat(StrEnum):
    text = "text"
    markdown = "markdown"
    html = "html"
    json = "json"
    bibtex = "bibtex"


SIGNS = ("\ue000", "\ue001")  # stand for the codes of a terminal until the text is free of those of documents
BOLD = ("\x1b[1m*", "*\x1b[22m")


def render_answer(run: Run, opened: Workspace, format: OutputFormat, *, verbose: bool = False) -> str:
    """The run's answer in the requested format; on a terminal, marked words are bold."""
    from assay.answer import render
    from assay.answer.claim_details import show_workings
    from assay.core.codec import to_json

    answer = run.answer
    assert answer is not None
    cited = render.citations(answer, run.evidence, opened.documents.get)
    match format:
        case OutputFormat.markdown:
            return plain(render.as_markdown(answer, cited, show_workings(answer, run.evidence, opened.documents.get)))
        case OutputFormat.html:
            return plain(render.as_html(answer, cited, show_workings(answer, run.evidence, opened.documents.get)))
        case OutputFormat.bibtex:
            return plain(render.as_bibtex(cited))
        case OutputFormat.json:
            data = render.as_json(answer, cited)
            for each in data["citations"]:
                each["boxes"] = to_json(wait_for(opened.documents.boxes(each["document"], each["start"], each["end"])))
            return as_json({"run": run.id, **data})
        case _:
            screen = console()
            if not screen.is_terminal or screen.is_dumb_terminal:
                return plain(render.as_text(answer, cited, verbose=verbose))
            text = plain(render.as_text(answer, cited, signs=SIGNS, width=screen.width, verbose=verbose))
            return text.replace(SIGNS[0], BOLD[0]).replace(SIGNS[1], BOLD[1])
