"""Use Assay's tools as an agent does: over MCP, with the official `mcp` package. No server has to run.

    python examples/mcp_client.py

Add some documents first, for example with examples/add_and_search.py.
"""

import asyncio
import os
import sys

from mcp.client import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client


async def heard(progress: float, total: float | None, message: str | None) -> None:
    print(f"{progress:.0f} {message}")


async def main() -> None:
    own = {name: value for name, value in os.environ.items() if name.startswith("ASSAY_")}
    assay = StdioServerParameters(command=sys.executable, args=["-m", "assay.cli.main", "mcp"], env=own)
    async with stdio_client(assay) as streams, ClientSession(*streams) as session:
        await session.initialize()
        print(", ".join(tool.name for tool in (await session.list_tools()).tools))
        question = {"question": "How long is raw telemetry kept?", "mode": "quick"}
        result = await session.call_tool("ask", question, progress_callback=heard)
        for content in result.content:
            print(getattr(content, "text", ""))


if __name__ == "__main__":
    asyncio.run(main())
