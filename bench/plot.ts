// Line plots as SVG, for results that people would rather look at.

export interface Curve {
  name: string;
  points: [number, number][];
}

const colours = ['#1b6ca8', '#b3541e', '#2e7d4f', '#7b3fa0', '#9c7a00', '#555555'];
const box = { left: 60, right: 460, top: 40, bottom: 300 };

/** Round numbers that cover a range. */
function ticks(low: number, high: number, wanted = 5): number[] {
  const rough = (high - low || 1) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough) ?? rough;
  const first = Math.floor(low / step);
  const count = Math.ceil(high / step) - first + 1;
  return Array.from({ length: count }, (_, i) => Number(((first + i) * step).toPrecision(6)));
}

export function linePlot({ title, curves }: { title: string; curves: Curve[] }): string {
  const all = curves.flatMap(({ points }) => points);
  const [xs, ys] = [all.map(([x]) => x), all.map(([, y]) => y)];
  const across = ticks(Math.min(...xs), Math.max(...xs));
  const up = ticks(Math.min(...ys), Math.max(...ys));
  const place = (value: number, marks: number[], from: number, to: number) =>
    Number((from + ((to - from) * (value - marks[0])) / (marks[marks.length - 1] - marks[0])).toFixed(1));
  const x = (value: number) => place(value, across, box.left, box.right);
  const y = (value: number) => place(value, up, box.bottom, box.top);
  const text = (at: [number, number], words: string, fill = '#444') =>
    `<text x="${at[0]}" y="${at[1]}" fill="${fill}">${words}</text>`;
  return [
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 330" font-family="sans-serif" font-size="12">',
    `<title>${title}</title>`,
    '<rect width="640" height="330" fill="white"/>',
    text([box.left, 20], title, '#111'),
    ...up.map(
      (mark) =>
        `<path d="M${box.left} ${y(mark)}H${box.right}" stroke="#ddd"/>${text([12, y(mark) + 4], `${mark}`)}`,
    ),
    ...across.map((mark) => text([x(mark) - 4, box.bottom + 18], `${mark}`)),
    ...curves.map(({ name, points }, i) => {
      const colour = colours[i % colours.length];
      const path = points.map(([a, b]) => `${x(a)},${y(b)}`).join(' ');
      const dots = points
        .map(([a, b]) => `<circle cx="${x(a)}" cy="${y(b)}" r="3" fill="${colour}"/>`)
        .join('');
      const line = `<polyline points="${path}" fill="none" stroke="${colour}" stroke-width="2"/>`;
      return line + dots + text([box.right + 14, box.top + 12 + 18 * i], name, colour);
    }),
    '</svg>\n',
  ].join('\n');
}
