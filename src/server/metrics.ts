// Figures for Prometheus: requests by route and status, inputs that wait by model, and those of the process.
import { collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { Crew } from './crew.ts';
import type { App } from './routes.ts';

/** Counts every answer of the app from now on; the function renders all figures. */
export function measured(app: App, crews: ReadonlyMap<string, Crew>) {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  const seconds = new Histogram({
    name: 'umbel_request_seconds',
    help: 'Time from the first byte of a request to the last of its answer',
    labelNames: ['method', 'route', 'status'] as const,
    buckets: [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10],
    registers,
  });
  new Gauge({
    name: 'umbel_waiting_inputs',
    help: 'Inputs that wait for a thread',
    labelNames: ['model'] as const,
    registers,
    collect() {
      for (const { name, waiting } of crews.values()) this.set({ model: name }, waiting);
    },
  });
  app.addHook('onResponse', (request, reply, done) => {
    const { method, routeOptions } = request;
    const route = routeOptions.url ?? 'unknown';
    seconds.observe({ method, route, status: reply.statusCode }, reply.elapsedTime / 1000);
    done();
  });
  return async () => ({ type: registry.contentType, text: await registry.metrics() });
}
