"""Ask a question, then walk every citation back to its place in the document, without trusting anybody.

    python examples/ask_and_check.py ["A question?"]

Add some documents first, for example with examples/add_and_search.py.
"""

import asyncio
import sys

from assay.core.types import Quote
from assay.workspace.facade import Workspace, open_workspace

QUESTION = "How long is raw telemetry kept?"


async def main(question: str) -> None:
    with open_workspace() as workspace:
        run = None
        async for run, event in workspace.ask(question):
            print(f"{len(run.events) - 1:>3} {type(event).__name__}")
        assert run is not None and run.answer is not None
        print(f"Outcome: {run.answer.outcome}. Run {run.id}.")
        for claim in run.answer.claims:
            if claim.quote is not None:
                await check(workspace, claim.quote)


async def check(workspace: Workspace, quote: Quote) -> None:
    document = workspace.documents.get(quote.doc_id)
    assert document is not None
    assert document.text[quote.start : quote.end] == quote.text, "this would be a false quotation"
    page = document.page_at(quote.start)
    boxes = await workspace.documents.boxes(document.id, quote.start, quote.end)
    print(f"“{' '.join(quote.text.split())}”")
    print(f"   {document.title}, characters {quote.start} to {quote.end}", end="")
    print(f", page {page}, boxes on it: {len(boxes)}" if page else "")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else QUESTION))
