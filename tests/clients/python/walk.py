"""A walk through the account's risk analyses, with the package `water_data` that openapi-python-client made.

Prints `id score created_at` of each row, then what has changed since. WATER_URL and WATER_API_KEY say where.
"""

import json
import os
from urllib.parse import parse_qs, urlsplit

from water_data import AuthenticatedClient
from water_data.api.default import get_hydrorisk
from water_data.models import Deletion, GetHydroriskFormat, RiskAnalysis


def page(client, **parameters):
    """Asks for a page. The generated `sync_detailed` reads JSON only, so the request that it sends is sent here."""
    request = get_hydrorisk._get_kwargs(format_=GetHydroriskFormat.NDJSON, **parameters)
    answer = client.get_httpx_client().request(**request)
    answer.raise_for_status()
    return answer


def walk(client, **parameters):
    """Yields the pages of a walk, from its first to the one without a next."""
    while True:
        answer = page(client, **parameters)
        yield answer
        following = answer.links.get("next")
        if following is None:
            return
        parameters["cursor"] = parse_qs(urlsplit(following["url"]).query)["cursor"][0]


def line(text):
    """Reads a line of NDJSON: a row, or the id of a row that was deleted."""
    fields = json.loads(text)
    return Deletion.from_dict(fields) if "deleted" in fields else RiskAnalysis.from_dict(fields)


client = AuthenticatedClient(base_url=os.environ["WATER_URL"], token=os.environ["WATER_API_KEY"])
pages = list(walk(client, limit=500))
rows = [line(text) for answer in pages for text in answer.text.splitlines()]
assert len(rows) == int(pages[0].headers["X-Total-Count"]), "rows of the walk, and the total of its first page"
for row in rows:
    print(row.id, row.global_score, row.created_at.isoformat())

# The token of the last page, of the state at which the walk began: what changes during it belongs to the next one.
changed = walk(client, changed_since=pages[-1].headers["X-Changes-Token"])
print("changed", [line(text) for answer in changed for text in answer.text.splitlines()])
