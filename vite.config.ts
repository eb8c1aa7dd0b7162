import { defineConfig } from 'vite';

/** Builds the studio into dist/studio, which the server reads; no file of it comes from elsewhere. */
export default defineConfig({
  root: 'studio',
  base: './',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: { outDir: '../dist/studio', emptyOutDir: true, target: 'es2022', modulePreload: false },
  logLevel: 'warn',
});
