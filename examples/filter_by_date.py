"""Search only what was written in a span of time, or since.

    python examples/filter_by_date.py [SINCE [UNTIL]]        2025, 2025-04, 2025-04-17 or "last 12 months"

Add some documents first, for example with examples/add_and_search.py.
"""

import asyncio
import sys
from datetime import date

from assay.core.events import SearchFilters
from assay.language.dates import first_day, last_day
from assay.workspace.facade import open_workspace


async def main(since: str, until: str) -> None:
    today = date.today().isoformat()
    where = SearchFilters(since=first_day(since, today), until=last_day(until, today))
    print(f"Documents dated {where.since} to {where.until}:")
    with open_workspace() as workspace:
        dates = {entry.id: entry.date for entry in workspace.documents.listing()}
        for hit in await workspace.search("highest nitrate reading", k=5, where=where):
            print(f"{hit.rank}. {dates[hit.passage.doc_id]}  {hit.title}")


if __name__ == "__main__":
    given = sys.argv[1:]
    asyncio.run(main(given[0] if given else "2025-04", given[1] if len(given) > 1 else "2025-06"))
