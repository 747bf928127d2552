"""The tools there are, by name. One file a tool; all of them only read."""

from assay.agent.tool import Tool
from assay.agent.toolbox.follow import follow
from assay.agent.toolbox.search import search

TOOLS: dict[str, Tool] = {tool.name: tool for tool in (search, follow)}
