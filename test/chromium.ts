// The system's Chromium, for tests of pages; where there is none, they say so.
import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

const executable = process.env.CHROMIUM ?? '/usr/bin/chromium';
export const skipReason = existsSync(executable)
  ? ''
  : `no Chromium at ${executable}; set CHROMIUM to its path`;

const flags = [
  ...['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking'],
  ...['--disable-component-update', '--disable-sync'],
];

export const launchChromium = (): Promise<Browser> =>
  chromium.launch({ executablePath: executable, args: flags });
