"""Figures beside an answer: cut out of their pages for whoever may read the document, and gone with it."""

from __future__ import annotations

import struct
from pathlib import Path

import httpx
from chart import CAPTION, chart_pdf
from sending import listed, read
from serving import followed
from team import team

from assay.store.access import grants


def answered(client: httpx.Client, question: str) -> dict:
    run = client.post("/api/runs", json={"question": question}).json()["run"]
    followed(client, run)
    return client.get(f"/api/runs/{run}").json()["answer"]


def test_a_figure_is_shown_beside_the_answer_that_cites_a_sentence_about_it(client: httpx.Client):
    read(client, [("report.pdf", chart_pdf())])
    answer = answered(client, "Which figure shows how many people came to the lighthouse?")
    assert [figure["caption"] for figure in answer["figures"]] == [CAPTION]
    (figure,) = answer["figures"]
    (whole,) = client.get(f"/api/documents/{figure['document']}").json()["figures"]
    assert whole == figure
    reply = client.get(f"/api/documents/{figure['document']}/figures/{figure['n']}", params={"width": 400})
    assert reply.headers["content-type"] == "image/png" and reply.headers["cache-control"] == "no-store"
    width, height = struct.unpack(">II", reply.content[16:24])
    assert abs(width - 400) <= 2 and abs(height / width - 180 / 300) < 0.03  # the chart, and nothing around it
    assert client.get(f"/api/documents/{figure['document']}/figures/2").status_code == 404
    assert not answered(client, "How tall is the tower at Carrow Point?")["figures"]


def test_a_figure_is_for_readers_of_its_document_and_gone_with_it(folder: Path):
    with team(folder) as given, given.as_("editor") as editor, given.as_("reader") as reader:
        read(editor, [("report.pdf", chart_pdf())])
        document = listed(editor, q="report.pdf")[0]["id"]
        path = f"/api/documents/{document}/figures/1"
        assert editor.get(path).content.startswith(b"\x89PNG")
        assert reader.get(path).status_code == 404
        store = given.at.server.workspace.store
        base = next(each for each in grants.every_base(store) if each.name == "default")
        grants.share(store, base, "user:reader")
        assert reader.get(path).content == editor.get(path).content
        assert editor.delete(f"/api/documents/{document}").is_success
        assert editor.get(path).status_code == reader.get(path).status_code == 404
