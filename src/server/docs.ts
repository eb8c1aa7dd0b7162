// The browsable page at /docs: the OpenAPI document as one plain page, without scripts and without anything from other
// hosts, so that it works offline and under a strict content policy.

interface Schema {
  type?: string;
  description?: string;
  default?: unknown;
  enum?: unknown[];
  minimum?: number;
  maximum?: number;
  required?: string[];
  properties?: Record<string, Schema>;
  items?: Schema;
  anyOf?: Schema[];
}
interface Body {
  content?: Record<string, { schema?: Schema }>;
}
interface Operation {
  tags?: string[];
  summary?: string;
  description?: string;
  parameters?: { name: string; in: string; required?: boolean; description?: string; schema?: Schema }[];
  requestBody?: Body;
  responses?: Record<string, Body>;
}
export interface Document {
  info: { title: string; version: string; description?: string };
  paths?: Record<string, Record<string, Operation>>;
}

const escaped = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

export function renderDocs({ info, paths = {} }: Document): string {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method, path, operation })),
  );
  const tags = new Set(operations.map(tagOf));
  const sections = Array.from(tags, (tag) => {
    const members = operations.filter((listed) => tagOf(listed) === tag);
    return `<h2>${escaped(tag)}</h2>\n${members.map(renderOperation).join('\n')}`;
  });
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escaped(info.title)}</title>
<style>${style}</style></head>
<body><main>
<h1>${escaped(info.title)} <small>${escaped(info.version)}</small></h1>
<p>${escaped(info.description ?? '')} The same for machines: <a href="openapi.json">openapi.json</a>.</p>
${sections.join('\n')}
</main></body></html>`;
}

interface Listed {
  method: string;
  path: string;
  operation: Operation;
}

const tagOf = ({ operation }: Listed) => operation.tags?.[0] ?? 'server';

function renderOperation({ method, path, operation }: Listed): string {
  const { summary = '', description, parameters = [], requestBody, responses = {} } = operation;
  const rows = parameters.map(({ name, in: place, description: meaning = '', schema = {} }) => {
    const help = escaped([meaning, range(schema)].filter(Boolean).join(' '));
    return `<tr><td><code>${escaped(name)}</code></td><td>${place}</td><td>${typeName(schema)}</td><td>${help}</td></tr>`;
  });
  const table = rows.length ? `<table><tr><th>parameter<th>in<th>type<th></tr>${rows.join('')}</table>` : '';
  return `<details><summary><b class="${method}">${method.toUpperCase()}</b> <code>${escaped(path)}</code> ${escaped(summary)}</summary>
${description ? `<p>${escaped(description)}</p>` : ''}${table}
${renderBody('Body', requestBody)}${renderBody('Answer', responses[200])}
<pre>${escaped(curl(method, path, requestBody))}</pre></details>`;
}

const renderBody = (title: string, body: Body = {}): string =>
  Object.entries(body.content ?? {})
    .map(
      ([type, { schema = {} }]) => `<h3>${title} <small>${escaped(type)}</small></h3>${renderSchema(schema)}`,
    )
    .join('');

function renderSchema(schema: Schema): string {
  const { properties, items, description = '' } = schema;
  if (items) return `<p>A list of:</p>${renderSchema(items)}`;
  if (!properties) return `<p>${typeName(schema)} ${escaped(description)}</p>`;
  const required = new Set(schema.required);
  const fields = Object.entries(properties).map(([name, field]) => {
    const inner = field.properties ? field : field.items?.properties ? field.items : undefined;
    const meaning = escaped([field.description, range(field)].filter(Boolean).join(' '));
    const key = `<code>${escaped(name)}</code>${required.has(name) ? '' : ' <i>optional</i>'}`;
    return `<li>${key}: ${typeName(field)} ${meaning}${inner ? renderSchema(inner) : ''}</li>`;
  });
  return `<ul>${fields.join('')}</ul>`;
}

function typeName({ type, anyOf, items, enum: choices }: Schema): string {
  if (anyOf) return anyOf.map(typeName).join(' or ');
  if (choices) return choices.map((choice) => `<code>${escaped(String(choice))}</code>`).join(' | ');
  return items ? `array of ${typeName(items)}` : (type ?? 'any');
}

function range({ minimum, maximum, default: value }: Schema): string {
  const bounds = [
    minimum === undefined ? '' : `at least ${minimum}`,
    maximum === undefined ? '' : `at most ${maximum}`,
    value === undefined ? '' : `default ${value}`,
  ].filter(Boolean);
  return bounds.length ? `(${bounds.join(', ')})` : '';
}

function curl(method: string, path: string, body?: Body): string {
  const address = `http://127.0.0.1:8080${path}`;
  if (method === 'get') return `curl ${address}`;
  const [type] = Object.keys(body?.content ?? {});
  const verb = type && method === 'post' ? '' : ` -X ${method.toUpperCase()}`;
  return `curl${verb} ${address}${type ? ` -H 'Content-Type: ${type}' -d '...'` : ''}`;
}

const style = `:root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}
main{max-width:60rem;margin:2rem auto;padding:0 1rem}h1 small,h3 small{font-weight:400;opacity:.7}
h2{margin:2rem 0 .5rem;text-transform:capitalize}h3{font-size:1rem;margin:1rem 0 0}
details{border:1px solid #8886;border-radius:.4rem;margin:.4rem 0;padding:.4rem .8rem}summary{cursor:pointer}
summary b{display:inline-block;min-width:3.2rem}.get{color:#07783f}.post{color:#0b5cad}.put{color:#7a5300}.delete{color:#a3362a}
@media(prefers-color-scheme:dark){.get{color:#5fd38d}.post{color:#7cb8f5}.put{color:#e0b64f}.delete{color:#f0998c}}
table{border-collapse:collapse}td,th{text-align:left;padding:.1rem .8rem .1rem 0;vertical-align:top}
pre{overflow:auto;background:#8882;padding:.6rem;border-radius:.4rem}ul{padding-left:1.2rem;margin:.2rem 0}`;
