// Charts as SVG: lines with bands of confidence.

export interface Line {
  name: string;
  points: { x: number; y: number; low: number; high: number }[];
}

const [width, height] = [520, 230];
const [left, right, above, below] = [44, 12, 10, 30];

/** Quality over training samples, on a logarithmic scale of samples. */
export function Curves({ lines, title }: { lines: Line[]; title: string }) {
  const points = lines.flatMap((line) => line.points);
  const [lowX, highX] = [Math.min(...points.map(({ x }) => x)), Math.max(...points.map(({ x }) => x))];
  const lowY = Math.max(0, Math.min(...points.map(({ low }) => low)) - 0.03);
  const highY = Math.min(1, Math.max(...points.map(({ high }) => high)) + 0.03);
  const along = (x: number) =>
    left + ((width - left - right) * Math.log(x / lowX)) / (Math.log(highX / lowX) || 1);
  const up = (y: number) => height - below - ((height - above - below) * (y - lowY)) / (highY - lowY || 1);
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((share) => lowY + share * (highY - lowY));
  const marks = [...new Set(points.map(({ x }) => x))].sort((a, b) => a - b);
  const last = lines.map(({ name, points: own }) => `${name} ${(100 * (own.at(-1)?.y ?? 0)).toFixed(1)}%`);
  return (
    <svg
      class="chart"
      viewBox={`0 0 ${width} ${height}`}
      role="img"
      aria-label={`${title}: ${last.join(', ')}`}
    >
      {ticks.map((y) => (
        <g key={y}>
          <line class="grid" x1={left} x2={width - right} y1={up(y)} y2={up(y)} />
          <text x={left - 6} y={up(y) + 4} text-anchor="end">
            {(100 * y).toFixed(0)}%
          </text>
        </g>
      ))}
      {marks.map((x) => (
        <text key={x} x={along(x)} y={height - 8} text-anchor={x === highX ? 'end' : 'middle'}>
          {x.toLocaleString('en')}
        </text>
      ))}
      {lines.map(({ name, points: own }, i) => (
        <g key={name} class={`series${i % 4}`}>
          <path
            class="band"
            d={`M${own.map(({ x, high }) => `${along(x)},${up(high)}`).join('L')}L${[...own]
              .reverse()
              .map(({ x, low }) => `${along(x)},${up(low)}`)
              .join('L')}Z`}
          />
          <path class="line" d={`M${own.map(({ x, y }) => `${along(x)},${up(y)}`).join('L')}`} />
          {own.map(({ x, y }) => (
            <circle key={x} class="dot" cx={along(x)} cy={up(y)} r="3.5" />
          ))}
        </g>
      ))}
    </svg>
  );
}
