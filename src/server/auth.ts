// Bearer tokens. The file holds one SHA-256 hash per line (and after it, if wanted, whose it is); the tokens themselves
// are 256 random bits, so that a plain hash is enough.
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { badInput } from '../errors.ts';

export const hashToken = (token: string): string => createHash('sha256').update(token).digest('hex');

export function newToken(): { token: string; hash: string } {
  const token = `umbel_${randomBytes(32).toString('base64url')}`;
  return { token, hash: hashToken(token) };
}

/** The hashes in the text of a tokens file; empty lines and lines after # are left out. */
export function parseTokens(text: string, file: string): Buffer[] {
  const hashes = text.split(/\r?\n/).flatMap((content, i) => {
    const [hash] = content.trim().split(/\s+/);
    if (hash === '' || hash.startsWith('#')) return [];
    if (/^[0-9a-f]{64}$/i.test(hash)) return [Buffer.from(hash, 'hex')];
    // Not shown: it might be a token that was put here by mistake.
    const rule = 'line must begin with the SHA-256 hash of a token, 64 hexadecimal digits';
    throw badInput(rule, { file, line: i + 1, hint: 'umbel serve --new-token prints one' });
  });
  if (hashes.length > 0) return hashes;
  throw badInput('tokens file must hold at least one hash', {
    file,
    hint: 'umbel serve --new-token prints one',
  });
}

/** Whether an Authorization header carries one of the tokens; every hash is compared, in constant time. */
export function isAuthorised(header: string | undefined, hashes: readonly Buffer[]): boolean {
  const [, token] = /^Bearer +(\S+)$/i.exec(header ?? '') ?? [];
  if (token === undefined) return false;
  const seen = createHash('sha256').update(token).digest();
  return hashes.reduce((found, hash) => timingSafeEqual(seen, hash) || found, false);
}
