"""What is told of a claim over HTTP: its basis, who judged it, what rules noticed, and the working."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from doubles import ChatServer, argues, supported, writes
from serving import ANSWER, QUESTION, Served, script

Serve = Callable[..., AbstractContextManager[Served]]
DENIED = "The tower of the lighthouse at Brackwell is 31 metres tall."
CLAIM = "The tower at Carrow Point is 3,100 centimetres tall."


def computed(text: str, schema: Any) -> Any:
    draft: Any = writes(f"{CLAIM} [{{31 metres}}]")(text, schema)
    (claim,) = draft["blocks"][0]["claims"]
    claim["calculation"] = {
        "expression": "31 * 100",
        "operands": [{"words": "31", "cite": claim["cites"][0]}],
        "result": "3,100",
        "unit": "centimetres",
    }
    return draft


def test_a_computed_claim_has_its_working_and_each_operand_its_line(serve: Serve):
    with ChatServer(script(write=computed).answer) as model, serve(model) as at, at.client() as client:
        run = client.post("/api/ask", json={"question": QUESTION}).json()
        claim = run["answer"]["blocks"][0]["claims"][0]
        assert (claim["basis"], claim["by"], claim["dispute"]) == ("calculation", "scripted", "")
        (operand,) = claim["working"]["operands"]
        assert claim["working"]["expression"] == "31 × 100 = 3100"
        assert (operand["words"], operand["citation"]) == ("31", 1) and ANSWER in operand["line"]
        data = client.get(f"/api/runs/{run['id']}/answer", params={"format": "json"}).json()
        assert data["blocks"][0]["claims"][0]["basis"] == "calculation"
        text = client.get(f"/api/runs/{run['id']}/answer", params={"format": "markdown"}).text
        assert "**Working**\n\n" in text and "\n  - working: 31 × 100 = 3100\n  - working: 31: “" in text
        page = client.get(f"/api/runs/{run['id']}/answer", params={"format": "html"}).text
        assert f"<summary>Working: {CLAIM}</summary>" in page


def test_a_quotation_is_judged_by_code_and_has_no_working(serve: Serve):
    with serve() as at, at.client() as client:
        answer = client.post("/api/ask", json={"question": QUESTION}).json()["answer"]
        claim = answer["blocks"][0]["claims"][0]
        assert (claim["basis"], claim["by"], claim["working"]) == ("quotation", "code", None)


def doubting(text: str, schema: Any) -> Any:
    """Every claim holds but the one on another place."""
    reply: Any = supported()(text, schema)
    for ruling in reply["rulings"]:
        if DENIED in text.partition(f"Claim {ruling['claim']} ")[2].partition("\n")[0]:
            ruling["verdict"] = "contradicted"
    return reply


def test_a_reviewer_sees_what_readers_see_and_claims_that_failed(serve: Serve):
    write = writes("The tower at Carrow Point is 31 metres tall [{31 metres}].", f"{DENIED} [{{31 metres}}]")
    lines = script(write=write, check=doubting, revise=argues("It leans."))
    with ChatServer(lines.answer) as model, serve(model) as at, at.client() as client:
        run = client.post("/api/ask", json={"question": QUESTION, "stakes": "high"}).json()
        assert run["state"] == "held", run
        first, second = client.get(f"/api/reviews/{run['id']}").json()["claims"]
        assert (first["basis"], first["by"], first["citations"]) == ("statement", "scripted", [1])
        assert (second["verdict"], second["by"], second["citations"]) == ("contradicted", "scripted", [])
