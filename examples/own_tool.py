"""Give the model a tool of your own: what it is told of it, and what a call gives.

    python examples/own_tool.py [WORD]

Add some documents first, for example with examples/add_and_search.py. From there on it is
`workspace.ask(question, tools=[abbreviation])`, or the setting `own_tools`.
"""

import asyncio
import json
import re
import sys

from assay.agent.tool import Result, ToolContext, as_found, schema_of, tool
from assay.agent.toolbox import tools_for
from assay.core.errors import ToolError
from assay.workspace.facade import open_workspace


@tool
async def abbreviation(context: ToolContext, short: str) -> Result:
    """Look up what an abbreviation stands for, where a document says it.

    short: the abbreviation, as it is written
    """
    for hit in await context.retrieve(short, 20):
        words = rf"((?:\w+ ){{{len(short)}}})\({re.escape(short)}\)"  # "Raised Alert Level (RAL)"
        if long := re.search(words, hit.passage.text):
            return Result(as_found([hit]), f"{short} is short for {long[1].strip()}")
    raise ToolError(f"No document says what {short!r} stands for. Try search.")


async def main(short: str) -> None:
    tools = tools_for(own=[abbreviation])
    print("The model is told:", json.dumps(schema_of(tools["abbreviation"]).parameters["properties"]))
    with open_workspace() as workspace:
        context = ToolContext(await workspace.context.search_context(workspace.scope()), workspace.scope)
        for arguments in ({"short": short}, {"short": short, "user": "somebody else"}):
            try:
                result = await tools["abbreviation"](context, arguments)
                print(f"{result.note} ({len(result.found)} passage)")
            except ToolError as error:
                print("Refused:", error)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "RAL"))
