// A walk through the account's risk analyses, with openapi-fetch and the types that openapi-typescript made.
//
// Prints `id score createdAt` of each row, then what has changed since. WATER_URL and WATER_API_KEY say where.

import createClient from "openapi-fetch";
import type { components, operations, paths } from "./generated/api.js";

type Schemas = components["schemas"];
type Line = Schemas["RiskAnalysis"] | Schemas["Deletion"];
type Query = NonNullable<operations["getHydrorisk"]["parameters"]["query"]>;
interface Page {
  headers: Headers;
  lines: Line[];
}

const client = createClient<paths>({
  baseUrl: process.env.WATER_URL,
  headers: { authorization: `Bearer ${process.env.WATER_API_KEY}` },
});

/** Asks for a page; a problem ends the walk. */
async function page(query: Query): Promise<Page> {
  const asked = { params: { query: { ...query, format: "ndjson" as const } }, parseAs: "text" as const };
  const { data, error, response } = await client.GET("/api/v1/hydrorisk", asked);
  if (error !== undefined) {
    throw new Error(`${response.status}: ${error.detail}`);
  }
  // openapi-fetch has no data for a page without rows, whose body is empty.
  const lines = (data ?? "").split("\n").filter((text) => text !== "");
  return { headers: response.headers, lines: lines.map((text) => JSON.parse(text) as Line) };
}

/** Returns the cursor of the page that follows, from its `Link`. */
function next(headers: Headers): string | null {
  const target = /<([^>]*)>; rel="next"/.exec(headers.get("link") ?? "")?.[1];
  return target === undefined ? null : new URL(target, process.env.WATER_URL).searchParams.get("cursor");
}

/** Returns the pages of a walk, from its first to the one without a next. */
async function walk(query: Query): Promise<[Page, ...Page[]]> {
  const first = await page(query);
  const pages: [Page, ...Page[]] = [first];
  for (let cursor = next(first.headers); cursor !== null; ) {
    const following = await page({ ...query, cursor });
    pages.push(following);
    cursor = next(following.headers);
  }
  return pages;
}

const pages = await walk({ limit: 500 });
const rows = pages.flatMap(({ lines }) => lines);
if (rows.length !== Number(pages[0].headers.get("x-total-count"))) {
  throw new Error("the walk has other rows than the total of its first page");
}
for (const row of rows) {
  console.log("deleted" in row ? row.deleted.id : `${row.id} ${row.globalScore} ${row.createdAt}`);
}

// The token of the last page, of the state at which the walk began: what changes during it belongs to the next one.
const last = pages.at(-1) ?? pages[0];
const changes = await walk({ changedSince: last.headers.get("x-changes-token") ?? "" });
console.log("changed", changes.flatMap(({ lines }) => lines));
