// Mulan's XML list of labels: `<label name="...">`, nested where a label has broader ones. A tolerant reader of just
// these tags, not an XML parser.
import { badInput } from '../errors.ts';
import { readLines } from './file.ts';
import type { Label } from './vocabulary.ts';

const maxCharacters = 256 * 2 ** 20;
const tag = /<!--[\s\S]*?-->|<(\/?)(?:\w+:)?label(?=[\s/>])((?:"[^"]*"|'[^']*'|[^"'>])*)>/gi;

/** Labels in file order; parents are the labels around one. */
export async function readMulanLabels(path: string): Promise<Label[]> {
  const labels = parseMulan(await readText(path), path);
  if (labels.length === 0) throw badInput('Mulan XML must list labels as <label name="...">', { file: path });
  return labels;
}

/** The whole text of a small file. */
async function readText(path: string): Promise<string> {
  const parts: string[] = [];
  let length = 0;
  for await (const { lines } of readLines(path)) {
    const part = lines.join('\n');
    length += part.length;
    if (length > maxCharacters)
      throw badInput(`file must have at most ${maxCharacters} characters`, { file: path });
    parts.push(part);
  }
  return parts.join('\n');
}

function parseMulan(text: string, file: string): Label[] {
  const labels = new Map<string, Label>();
  const open: string[] = [];
  for (const [whole, slash, attributes] of text.matchAll(tag)) {
    if (whole.startsWith('<!--')) continue;
    if (slash) {
      open.pop();
      continue;
    }
    const [, double, quoted] = /(?:^|\s)name\s*=\s*(?:"([^"]*)"|'([^']*)')/i.exec(attributes) ?? [];
    const id = decodeEntities(double ?? quoted ?? '');
    if (id === '') throw badInput('every <label> must have a name', { file, value: whole });
    if (labels.has(id)) throw badInput('label names must be unique', { file, value: id });
    const parent = open.at(-1);
    labels.set(id, parent === undefined ? { id } : { id, parents: [parent] });
    if (!attributes.trimEnd().endsWith('/')) open.push(id);
  }
  return [...labels.values()];
}

const named: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

function decodeEntities(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|(\w+));/gi, (whole, decimal, hex, name) => {
    if (name) return Object.hasOwn(named, name) ? named[name] : whole;
    const code = decimal ? Number(decimal) : Number.parseInt(hex, 16);
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
}
