"""Ask with a language model that follows a script: how to test what you build on Assay, with no model and no network.

    python examples/scripted_model.py

Add some documents first, for example with examples/add_and_search.py.
"""

import asyncio
import sys
from pathlib import Path

from assay.core.run import Run
from assay.workspace.facade import open_workspace

sys.path.append(str(Path(__file__).parent.parent / "tests"))  # the scripted models are those of Assay's own tests
from doubles import ChatServer, Script, drops, keeps, lookup, verdicts, writes


async def main() -> None:
    script = Script(
        route=lookup(),
        weigh=keeps("Raw telemetry is kept for"),
        write=writes("Raw telemetry is kept for 90 days. [{90 days}]", "The moon is made of cheese. [{0}]"),
        check=verdicts("supported", "unsupported"),
        revise=drops(),
    )
    with ChatServer(script.answer) as server, open_workspace(llm_base_url=server.url, llm_model="scripted") as opened:
        run: Run | None = None
        async for now, event in opened.ask("How long is raw telemetry kept?"):
            run = now
            print(type(event).__name__)
        assert run is not None and run.answer is not None
        for claim in run.answer.claims:
            print(claim.text, "·", claim.why)


if __name__ == "__main__":
    asyncio.run(main())
