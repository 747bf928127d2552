"""An account as one page that needs nothing else: no request leaves it, and nothing in it is run but its own script. Pure."""

from __future__ import annotations

import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib import resources

from assay.core.account import Account
from assay.synthesis.output import page_gathered as gathered
from assay.synthesis.output import page_narrative as upper
from assay.synthesis.output import page_related as related
from assay.synthesis.output.footnotes import footnotes
from assay.synthesis.output.rows import plural, subtitle, title
from assay.synthesis.output.typeset import words

PARTS = (
    upper.told,
    upper.spine,
    gathered.coverage,
    related.picture,
    gathered.compared,
    related.opposed,
    related.others,
    gathered.questions,
    gathered.documents,
    gathered.quotations,
    gathered.diagnostics,
    gathered.how_made,
)
HEADING = re.compile(r'<section id="([a-z]+)"[^>]*><h2[^>]*>([^<]+)</h2>')

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{style}</style></head>
<body><a class="skip" href="#main">Skip to the account</a>
<header><h1 dir="auto">{title}</h1><p class="subtitle">{subtitle}{notes}</p>
<nav aria-label="Parts of this page"><ul>{contents}</ul></nav></header>
<main id="main">
{body}
</main>
<script>{script}</script></body></html>
"""


def html(account: Account) -> str:
    """The page. Everything from documents and models is text in it, and it reads the same without its script."""
    notes = footnotes(account)
    parts = [made for part in PARTS if (made := part(notes))]
    contents = "".join(
        f'<li><a href="#{found[1]}">{found[2]}</a></li>' for part in parts if (found := HEADING.match(part))
    )
    script = own("page.js")
    return PAGE.format(
        policy=policy(script),
        title=words(title(account)),
        subtitle=words(subtitle(account)),
        notes=f' <a href="#notes">{plural(len(account.notes), "note")} on how it was made</a>' if account.notes else "",
        style=own("page.css"),
        contents=contents,
        body="\n".join(parts),
        script=script,
    )


def policy(script: str) -> str:
    """What a browser lets the page do: show itself, and run this script and no other."""
    digest = b64encode(sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


@cache
def own(name: str) -> str:
    """A file that lies beside this one."""
    return (resources.files("assay.synthesis.output") / name).read_text(encoding="utf-8")
