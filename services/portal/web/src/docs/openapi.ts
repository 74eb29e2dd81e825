//! What the reference reads of an OpenAPI 3.1 document, with its references followed.

export type Parameter = { name: string; in: 'query' | 'header' | 'path'; description?: string; example?: unknown };
export type Header = { description?: string; example?: unknown };
type Example = { value?: unknown };
type Media = { examples?: Record<string, Example>; example?: unknown };
type Ref = { $ref: string };
export type Response = { description?: string; headers?: Record<string, Header | Ref>; content?: Record<string, Media> };
export type Operation = {
  operationId?: string;
  summary?: string;
  deprecated?: boolean;
  parameters?: Parameter[];
  responses: Record<string, Response>;
  security?: Record<string, string[]>[];
};
export type Document = {
  info: { title: string; version: string; description?: string };
  paths: Record<string, { get?: Operation }>;
  components?: { headers?: Record<string, Header> };
};

/** The operations that read, each with its path. HEAD answers as GET and is left out. */
export function operations(document: Document): { path: string; of: Operation }[] {
  return Object.entries(document.paths).flatMap(([path, item]) => (item.get ? [{ path, of: item.get }] : []));
}

/** A header that stands in the components or in place. */
export function header(document: Document, found: Header | Ref): Header {
  if (!('$ref' in found)) return found;
  const name = found.$ref.split('/').at(-1) ?? '';
  return document.components?.headers?.[name] ?? {};
}

/** The forms that a success can have, each with its first example as text. */
export function examples(of: Operation): { type: string; text: string }[] {
  return Object.entries(of.responses['200']?.content ?? {}).flatMap(([type, media]) => {
    const value = media.example ?? Object.values(media.examples ?? {})[0]?.value;
    if (value === undefined) return [];
    return [{ type, text: typeof value === 'string' ? value : JSON.stringify(value, null, 2) }];
  });
}

/** The statuses that are no success, with what they mean. */
export function problems(of: Operation): { status: string; text: string }[] {
  return Object.entries(of.responses)
    .filter(([status]) => status !== '200')
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([status, response]) => ({ status, text: response.description ?? '' }));
}

/** Whether an operation can be asked without a key. */
export function isOpen(of: Operation): boolean {
  return of.security?.length === 0;
}
