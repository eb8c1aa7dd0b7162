// model.json: what a model folder holds, with the size and SHA-256 of every part and of itself. No disk in here: the
// same checks run in Node and in a browser.
import { UmbelError } from '../errors.ts';
import type { Json } from '../parts.ts';

export const formatVersion = 1;
export const manifestName = 'model.json';

export interface PartEntry {
  file: string;
  bytes: number;
  sha256: string;
}

export interface Manifest {
  format: 'umbel-model';
  version: number;
  /** What was saved, as the saver described it. */
  content: Json;
  parts: PartEntry[];
}

/** Part names become file names; nothing that could leave the folder is accepted. */
const fileRule = /^[a-z0-9][a-z0-9-]*\.(safetensors|jsonl|onnx)$/;

export const broken = (file: string, rule: string, value?: unknown, hint?: string) =>
  new UmbelError('model', rule, { file, value, hint });

export async function sha256(bytes: Uint8Array): Promise<string> {
  if (!crypto.subtle) {
    throw new UmbelError('usage', 'page must come from https or localhost: others cannot check a model', {
      value: location.origin,
    });
  }
  const digest = await crypto.subtle.digest('SHA-256', bytes as Uint8Array<ArrayBuffer>);
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** The text of model.json; its last field is the checksum of everything before it. */
export async function renderManifest(manifest: Manifest): Promise<string> {
  const checksum = await sha256(new TextEncoder().encode(JSON.stringify(manifest)));
  return `${JSON.stringify({ ...manifest, sha256: checksum }, null, 2)}\n`;
}

/** Reads and checks model.json; `file` names it in errors. */
export async function parseManifest(text: string, file: string): Promise<Manifest> {
  let parsed: Record<string, unknown>;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw broken(file, 'model.json must be valid JSON: it is damaged or cut short');
  }
  if (parsed?.format !== 'umbel-model') throw broken(file, 'format must be umbel-model', parsed?.format);
  if (parsed.version !== formatVersion) {
    const newer = typeof parsed.version === 'number' && parsed.version > formatVersion;
    const hint = newer ? 'the model was saved by a newer umbel: update umbel to use it' : undefined;
    throw broken(file, `format version must be ${formatVersion}`, parsed.version, hint);
  }
  const { sha256: checksum, ...rest } = parsed;
  if (checksum !== (await sha256(new TextEncoder().encode(JSON.stringify(rest))))) {
    throw broken(file, 'model.json must match its own checksum: it was altered', checksum);
  }
  const manifest = rest as unknown as Manifest;
  for (const part of manifest.parts) {
    if (!fileRule.test(part.file)) throw broken(file, 'part names must be plain file names', part.file);
  }
  return manifest;
}

/** Checks a part's bytes against the manifest. */
export async function checkPart(entry: PartEntry, bytes: Uint8Array, file: string): Promise<void> {
  if (bytes.length !== entry.bytes) {
    throw broken(file, `part must have ${entry.bytes} bytes`, bytes.length);
  }
  const seen = await sha256(bytes);
  if (seen !== entry.sha256) throw broken(file, 'part must match its checksum: it was altered', seen);
}
