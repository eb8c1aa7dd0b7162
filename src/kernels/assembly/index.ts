// The kernel module: everything exported here is callable from wasm.ts.
export * from './adam';
export * from './cluster';
export * from './grlr';
export * from './logistic';
export * from './nearest';
export * from './places';
export * from './refine';
export * from './search';
export * from './senses';
export * from './solve';
