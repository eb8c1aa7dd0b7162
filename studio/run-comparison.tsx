// Runs side by side: metrics with intervals, by frequency of labels, and over training samples.
import type { Run } from '../src/client.ts';
import { Curves } from './charts.tsx';
import { count, percent, Wide } from './parts.tsx';

const metrics = ['P@1', 'P@3', 'P@5', 'nDCG@5', 'PSP@5', 'R@10', 'microF1', 'macroF1'] as const;
const nameOf = ({ id, spec }: Run) => spec.name || `Run ${id}`;

export function Comparison({ runs }: { runs: Run[] }) {
  const curved = runs.filter(({ curve }) => curve.length > 1);
  return (
    <div class="two">
      <section class="panel stack" aria-label="Metrics">
        <h2>Metrics</h2>
        <Metrics runs={runs} />
        <p class="soft small">
          ± half of the 95% interval, by resampling the {count(runs[0].result?.report.n ?? 0)} test samples.
          Runs whose intervals overlap widely are hardly different.
        </p>
      </section>
      <div class="stack">
        <section class="panel stack" aria-label="By frequency">
          <h2>By frequency of labels</h2>
          <Bins runs={runs} />
        </section>
        <section class="panel stack" aria-label="Learning curve">
          <h2>Learning curve</h2>
          {curved.length > 0 ? (
            <>
              <Legend runs={curved} />
              <Curves
                title="P@1 over training samples"
                lines={curved.map((run) => ({
                  name: nameOf(run),
                  points: run.curve.map(({ samples, metrics: { 'P@1': p } }) => ({
                    x: samples,
                    y: p.value,
                    low: p.low,
                    high: p.high,
                  })),
                }))}
              />
              <p class="soft small">
                P@1 over training samples, with 95% intervals. Still rising at the end: more data would help.
              </p>
            </>
          ) : (
            <p class="soft">
              Start a run with a learning curve to see whether more data would help: it trains on an eighth, a
              quarter and a half of the samples first.
            </p>
          )}
        </section>
      </div>
    </div>
  );
}

const Legend = ({ runs }: { runs: Run[] }) => (
  <div class="row small">
    {runs.map((run, i) => (
      <span key={run.id} class={`series${i % 4}`}>
        <i class="swatch" />
        {nameOf(run)}
      </span>
    ))}
  </div>
);

function Metrics({ runs }: { runs: Run[] }) {
  return (
    <Wide name="Metrics of runs">
      <table>
        <thead>
          <tr>
            <th>%</th>
            {runs.map((run) => (
              <th key={run.id} class="number">
                {nameOf(run)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {metrics.map((metric) => (
            <tr key={metric}>
              <th>{metric}</th>
              {runs.map(({ id, result }) => {
                const interval = result?.report.intervals?.[metric];
                return (
                  <td key={id} class="number">
                    {(100 * (result?.report[metric] ?? 0)).toFixed(1)}
                    {interval && (
                      <span class="soft small"> ± {(50 * (interval.high - interval.low)).toFixed(1)}</span>
                    )}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </Wide>
  );
}

function Bins({ runs }: { runs: Run[] }) {
  const [first] = runs;
  const bins = first.result?.report.bins;
  if (!bins) return null;
  return (
    <Wide name="Recall by frequency">
      <table>
        <thead>
          <tr>
            <th>Seen in training</th>
            <th class="number">Labels</th>
            {runs.map((run) => (
              <th key={run.id} class="number">
                {runs.length > 1 ? nameOf(run) : `Found in top ${bins.k}`}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {bins.rows.map((bin, i) => (
            <tr key={bin.name}>
              <th>
                {bin.name}{' '}
                <span class="soft small">{bin.from === 0 ? 'never' : `${count(bin.from)} or more`}</span>
              </th>
              <td class="number">{count(bin.labels)}</td>
              {runs.map(({ id, result }) => {
                const own = result?.report.bins.rows[i];
                return (
                  <td key={id} class="number">
                    {own && own.positives > 0 ? percent(own.recall, 1) : '–'}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </Wide>
  );
}
