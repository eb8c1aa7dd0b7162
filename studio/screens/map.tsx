// Map: all labels in the plane, like ones near each other; and how alike some of them are, each with each.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { LabelMap as Labels, Similarities } from '../../src/client.ts';
import { Empty, Head, NoModel, Pending, plural, Search, Trouble, Wide, Working } from '../parts.tsx';
import { Scatter } from '../scatter.ts';
import { address, useAnswer, useStudio } from '../use.ts';

const mostChosen = 20;

export function LabelMap() {
  const { client, model } = useStudio();
  const answer = useAnswer(model || undefined, () => client.map(model));
  const map = answer.value;
  const isMade = map?.ready || answer.error;
  useEffect(() => {
    if (isMade || answer.loading) return;
    const timer = setTimeout(answer.again, 700);
    return () => clearTimeout(timer);
  }, [isMade, answer.loading, answer.again]);
  if (!model) return <NoModel />;
  return (
    <>
      <Head
        title="Map"
        words="Labels that the same words speak for lie near each other. Choose some to compare them."
      />
      <Pending answer={answer} />
      {map && !map.ready && (
        <Empty title="The map is being drawn">
          <Working
            share={map.progress}
            words="Once for each version of a model; a hundred thousand labels take about a minute."
          />
        </Empty>
      )}
      {map?.ready && <Drawn map={map} />}
    </>
  );
}

function Drawn({ map }: { map: Labels }) {
  const [chosen, setChosen] = useState<number[]>([]);
  const [search, setSearch] = useState('');
  const scatter = useRef<Scatter | undefined>(undefined);
  const names = useMemo(() => map.names.map((name) => name.toLowerCase()), [map]);
  const found = useMemo(() => search.trim() && matches(names, search.trim()), [names, search]);
  const toggle = (point: number) =>
    setChosen((now) =>
      now.includes(point) ? now.filter((other) => other !== point) : [...now, point].slice(-mostChosen),
    );
  const choose = (point: number) => {
    toggle(point);
    scatter.current?.centre(point);
  };
  const first = useMemo(() => {
    return [...(found || [])].sort((a, b) => map.samples[b] - map.samples[a]).slice(0, 8);
  }, [map, found]);
  return (
    <div class="stack">
      <div class="row between">
        <Search
          value={search}
          placeholder="Part of a name"
          onSearch={setSearch}
          onEnter={() => first.length > 0 && choose(first[0])}
        />
        <span class="soft small" role="status">
          {found ? `${plural(found.size, 'label')} found` : plural(map.ids.length, 'label')}
          {map.leftOut > 0 && ` · ${plural(map.leftOut, 'label')} left out: no samples, or like no other`}
        </span>
      </div>
      {first.length > 0 && (
        <div class="chips">
          {first.map((point) => (
            <button
              key={point}
              type="button"
              class="chip"
              aria-pressed={chosen.includes(point)}
              onClick={() => choose(point)}
            >
              {map.names[point]}
            </button>
          ))}
        </div>
      )}
      <Canvas
        {...{ map, chosen, scatter }}
        found={found || undefined}
        onToggle={toggle}
        onMany={(points) => setChosen(points.slice(0, mostChosen))}
      />
      {chosen.length > 0 && (
        <div class="chips">
          {chosen.map((point) => (
            <button key={point} type="button" class="chip" onClick={() => toggle(point)}>
              {map.names[point]} ×
            </button>
          ))}
          <button type="button" class="plain" onClick={() => setChosen([])}>
            Clear
          </button>
        </div>
      )}
      <Heat ids={chosen.map((point) => map.ids[point])} />
    </div>
  );
}

/** Names are in lower case. */
function matches(names: string[], search: string): Set<number> {
  const wanted = search.toLowerCase();
  const found = new Set<number>();
  names.forEach((name, i) => {
    if (name.includes(wanted)) found.add(i);
  });
  return found;
}

interface CanvasProps {
  map: Labels;
  chosen: number[];
  found?: ReadonlySet<number>;
  scatter: { current: Scatter | undefined };
  onToggle(point: number): void;
  onMany(points: number[]): void;
}

function Canvas({ map, chosen, found, scatter, onToggle, onMany }: CanvasProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [hovered, setHovered] = useState<{ point: number; x: number; y: number }>();
  const drag = useRef<{ x: number; y: number; moved: boolean } | undefined>(undefined);
  useEffect(() => {
    if (!canvas.current) return;
    const most = Math.log1p(map.samples.reduce((a, b) => Math.max(a, b), 1));
    const weight = Float32Array.from(map.samples, (samples) => Math.log1p(samples) / most);
    const made = new Scatter(canvas.current, { x: map.x, y: map.y, weight });
    scatter.current = made;
    const redraw = () => made.draw();
    addEventListener('resize', redraw);
    const dark = matchMedia('(prefers-color-scheme: dark)');
    dark.addEventListener('change', redraw);
    return () => {
      removeEventListener('resize', redraw);
      dark.removeEventListener('change', redraw);
    };
  }, [map, scatter]);
  useEffect(() => {
    scatter.current?.show({ chosen, found, nameOf: (point) => map.names[point] });
  }, [chosen, found, map, scatter]);
  useWheel(canvas, (event) =>
    scatter.current?.zoom(Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY),
  );
  const move = (event: PointerEvent) => {
    const from = drag.current;
    if (from) {
      const [dx, dy] = [event.offsetX - from.x, event.offsetY - from.y];
      if (!from.moved && Math.hypot(dx, dy) < 4) return;
      drag.current = { x: event.offsetX, y: event.offsetY, moved: true };
      return scatter.current?.move(dx, dy);
    }
    const point = scatter.current?.nearest(event.offsetX, event.offsetY);
    setHovered(point === undefined ? undefined : { point, x: event.offsetX, y: event.offsetY });
  };
  const release = (event: PointerEvent) => {
    const point = scatter.current?.nearest(event.offsetX, event.offsetY);
    if (!drag.current?.moved && point !== undefined) onToggle(point);
    drag.current = undefined;
  };
  const keys: Record<string, () => void> = {
    '+': () => scatter.current?.zoom(1.5),
    '-': () => scatter.current?.zoom(1 / 1.5),
    ArrowLeft: () => scatter.current?.move(60, 0),
    ArrowRight: () => scatter.current?.move(-60, 0),
    ArrowUp: () => scatter.current?.move(0, 60),
    ArrowDown: () => scatter.current?.move(0, -60),
    '0': () => scatter.current?.whole(),
  };
  return (
    <div class="map">
      <canvas
        ref={canvas}
        tabIndex={0}
        role="img"
        aria-label={`Map of ${plural(map.ids.length, 'label')}. Plus and minus zoom, arrows move; the search above finds labels.`}
        onPointerDown={(event) => {
          drag.current = { x: event.offsetX, y: event.offsetY, moved: false };
          event.currentTarget.setPointerCapture(event.pointerId);
        }}
        onPointerMove={move}
        onPointerUp={release}
        onPointerLeave={() => setHovered(undefined)}
        onKeyDown={(event) => {
          if (!keys[event.key]) return;
          event.preventDefault();
          keys[event.key]();
        }}
      />
      {hovered && (
        <div class="tip" style={{ transform: `translate(${hovered.x + 12}px, ${hovered.y + 12}px)` }}>
          {map.names[hovered.point]} · {plural(map.samples[hovered.point], 'sample')}
        </div>
      )}
      <div class="buttons">
        <button type="button" aria-label="Zoom in" onClick={() => scatter.current?.zoom(1.6)}>
          +
        </button>
        <button type="button" aria-label="Zoom out" onClick={() => scatter.current?.zoom(1 / 1.6)}>
          −
        </button>
        <button type="button" aria-label="Show the whole map" onClick={() => scatter.current?.whole()}>
          ⤢
        </button>
        <button
          type="button"
          aria-label="Compare what is to be seen"
          title="Compare the most frequent labels to be seen"
          onClick={() => onMany(scatter.current?.visible(12) ?? [])}
        >
          ▦
        </button>
      </div>
    </div>
  );
}

/** The browser would scroll the page, and lets that be kept from happening only so. */
function useWheel(target: { current: HTMLElement | null }, onWheel: (event: WheelEvent) => void): void {
  const latest = useRef(onWheel);
  latest.current = onWheel;
  useEffect(() => {
    const element = target.current;
    const turn = (event: WheelEvent) => {
      event.preventDefault();
      latest.current(event);
    };
    element?.addEventListener('wheel', turn, { passive: false });
    return () => element?.removeEventListener('wheel', turn);
  }, [target]);
}

function Heat({ ids }: { ids: string[] }) {
  const { client, model } = useStudio();
  const answer = useAnswer(ids.length > 1 ? JSON.stringify([model, ids]) : undefined, () =>
    client.similarities(model, ids),
  );
  return (
    <section class="panel stack" aria-label="How alike">
      <h2>How alike</h2>
      {answer.error && <Trouble error={answer.error} />}
      {ids.length < 2 ? (
        <p class="soft">
          Choose two or more labels: click points or names, or take what is to be seen with ▦. Here is then
          how alike they are, each with each.
        </p>
      ) : (
        answer.value && <HeatTable {...answer.value} />
      )}
    </section>
  );
}

function HeatTable({ labels, matrix }: Similarities) {
  return (
    <Wide name="Similarities">
      <table class="heat">
        <thead>
          <tr>
            <td />
            {labels.map(({ id, name }, i) => (
              <th key={id} scope="col" title={name}>
                {i + 1}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {labels.map(({ id, name }, i) => (
            <tr key={id}>
              <th scope="row" title={name}>
                <a href={address('labels', { label: id })}>{name}</a> {i + 1}
              </th>
              {matrix[i].map((value, j) => (
                <td
                  key={labels[j].id}
                  style={{ '--strength': i === j ? 0 : value }}
                  title={`${name} and ${labels[j].name}`}
                >
                  {i === j ? '' : value.toFixed(2).replace(/^0/, '')}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Wide>
  );
}
