// The compiled package, as users run it: kernels and worker threads only load from there. Run benchmarks from the
// project's folder after `npm run build`.
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

/** A module of the package: `built<typeof import('../src/math/csr.ts')>('math/csr.js')`. */
export const built = <Module>(file: string): Promise<Module> =>
  import(pathToFileURL(resolve('dist', file)).href);
