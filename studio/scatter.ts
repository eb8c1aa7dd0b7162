// Many points on a canvas: drawn as pixels, zoomed and moved; the nearest to the pointer is found by a grid.
// Knows nothing of labels.

export interface Points {
  x: ArrayLike<number>;
  y: ArrayLike<number>;
  /** 0 to 1: how large and strong a point is. */
  weight: ArrayLike<number>;
}

export interface Shown {
  /** Drawn larger, in another colour, with their names. */
  chosen: readonly number[];
  /** Where given, all others are faint. */
  found?: ReadonlySet<number>;
  nameOf(point: number): string;
}

const gridSize = 128;

export class Scatter {
  readonly #canvas: HTMLCanvasElement;
  readonly #points: Points;
  readonly #cells: Uint32Array[];
  #scale = 1;
  #left = 0;
  #top = 0;
  #shown: Shown = { chosen: [], nameOf: () => '' };
  #frame = 0;

  constructor(canvas: HTMLCanvasElement, points: Points) {
    this.#canvas = canvas;
    this.#points = points;
    this.#cells = gridOf(points);
  }

  show(shown: Shown): void {
    this.#shown = shown;
    this.draw();
  }

  /** About a place in the canvas, in CSS pixels. */
  zoom(factor: number, px = this.#canvas.clientWidth / 2, py = this.#canvas.clientHeight / 2): void {
    const next = Math.min(200, Math.max(1, this.#scale * factor));
    const [x, y] = this.#toPoint(px, py);
    this.#scale = next;
    const [nx, ny] = this.#toPixel(x, y);
    this.move(px - nx, py - ny);
  }

  move(dx: number, dy: number): void {
    this.#left += dx;
    this.#top += dy;
    // Something of the map is always to be seen.
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    const room = (size: number) => [size * (1 - this.#scale) - size / 2, size / 2] as const;
    const clamp = (value: number, [low, high]: readonly [number, number]) =>
      Math.min(high, Math.max(low, value));
    this.#left = clamp(this.#left, room(width));
    this.#top = clamp(this.#top, room(height));
    this.draw();
  }

  /** Puts a point into the middle. */
  centre(point: number, scale = Math.max(this.#scale, 6)): void {
    this.#scale = scale;
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    const [x, y] = this.#toPixel(this.#points.x[point], this.#points.y[point]);
    this.move(width / 2 - x, height / 2 - y);
  }

  whole(): void {
    [this.#scale, this.#left, this.#top] = [1, 0, 0];
    this.draw();
  }

  /** The point nearest to a place, if one is near. */
  nearest(px: number, py: number, reach = 14): number | undefined {
    const [low, high] = [this.#toPoint(px - reach, py - reach), this.#toPoint(px + reach, py + reach)];
    let [best, distance] = [undefined as number | undefined, reach ** 2];
    for (const point of this.#within(low, high)) {
      const [x, y] = this.#toPixel(this.#points.x[point], this.#points.y[point]);
      const own = (x - px) ** 2 + (y - py) ** 2;
      if (own < distance) [best, distance] = [point, own];
    }
    return best;
  }

  /** Points to be seen now, the heaviest first. */
  visible(most: number): number[] {
    const { clientWidth, clientHeight } = this.#canvas;
    const { weight } = this.#points;
    return this.#within(this.#toPoint(0, 0), this.#toPoint(clientWidth, clientHeight))
      .sort((a, b) => weight[b] - weight[a])
      .slice(0, most);
  }

  draw(): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = requestAnimationFrame(() => this.#paint());
  }

  #toPixel(x: number, y: number): [number, number] {
    const { clientWidth, clientHeight } = this.#canvas;
    const edge = 0.04;
    const inset = (value: number) => edge + (1 - 2 * edge) * value;
    return [
      inset(x) * clientWidth * this.#scale + this.#left,
      inset(y) * clientHeight * this.#scale + this.#top,
    ];
  }

  #toPoint(px: number, py: number): [number, number] {
    const { clientWidth, clientHeight } = this.#canvas;
    const edge = 0.04;
    const outset = (value: number) => (value - edge) / (1 - 2 * edge);
    return [
      outset((px - this.#left) / (clientWidth * this.#scale)),
      outset((py - this.#top) / (clientHeight * this.#scale)),
    ];
  }

  #within([x0, y0]: [number, number], [x1, y1]: [number, number]): number[] {
    const { x, y } = this.#points;
    const found: number[] = [];
    const [fromX, toX, fromY, toY] = [cellOf(x0), cellOf(x1), cellOf(y0), cellOf(y1)];
    for (let row = fromY; row <= toY; row++) {
      for (let column = fromX; column <= toX; column++) {
        for (const point of this.#cells[row * gridSize + column])
          if (x[point] >= x0 && x[point] <= x1 && y[point] >= y0 && y[point] <= y1) found.push(point);
      }
    }
    return found;
  }

  #paint(): void {
    const canvas = this.#canvas;
    const context = canvas.getContext('2d');
    if (!context) return;
    const ratio = devicePixelRatio || 1;
    const { clientWidth: width, clientHeight: height } = canvas;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const style = getComputedStyle(canvas);
    const colour = (name: string) => style.getPropertyValue(name);
    const { found, chosen, nameOf } = this.#shown;
    const { x, y, weight } = this.#points;
    const points = this.#within(this.#toPoint(-8, -8), this.#toPoint(width + 8, height + 8));
    const grow = Math.min(3, 1 + Math.log2(this.#scale) / 3);
    context.fillStyle = colour('--second');
    for (const point of points) {
      const [px, py] = this.#toPixel(x[point], y[point]);
      const size = (1.2 + 3 * weight[point]) * grow;
      const isFaint = found && !found.has(point);
      context.globalAlpha = isFaint ? 0.08 : found ? 0.95 : 0.3 + 0.5 * weight[point];
      context.fillRect(px - size / 2, py - size / 2, size, size);
    }
    context.globalAlpha = 1;
    context.font = `600 12px ${colour('--font')}`;
    this.#names(context, points, found, colour('--ink'), colour('--panel'));
    context.fillStyle = colour('--accent');
    for (const point of chosen) {
      const [px, py] = this.#toPixel(x[point], y[point]);
      context.beginPath();
      context.arc(px, py, 5, 0, 7);
      context.fill();
      context.strokeText(nameOf(point), px + 9, py + 4);
      context.fillText(nameOf(point), px + 9, py + 4);
    }
  }

  /** Names of the heaviest points, where there is room for them. */
  #names(
    context: CanvasRenderingContext2D,
    points: number[],
    found: ReadonlySet<number> | undefined,
    ink: string,
    halo: string,
  ): void {
    const { x, y, weight } = this.#points;
    const named = points
      .filter((point) => (!found || found.has(point)) && !this.#shown.chosen.includes(point))
      .sort((a, b) => weight[b] - weight[a])
      .slice(0, 60);
    const taken: [number, number, number][] = [];
    context.fillStyle = ink;
    context.strokeStyle = halo;
    context.lineWidth = 3;
    for (const point of named) {
      const [px, py] = this.#toPixel(x[point], y[point]);
      const name = this.#shown.nameOf(point);
      const width = context.measureText(name).width + 8;
      const left = px - width / 2;
      if (left < 0 || left + width > this.#canvas.clientWidth || py < 16) continue;
      if (taken.some(([a, b, w]) => Math.abs(b - py) < 18 && left < a + w && a < left + width)) continue;
      taken.push([left, py, width]);
      context.strokeText(name, left + 4, py - 6);
      context.fillText(name, left + 4, py - 6);
      if (taken.length >= 28) return;
    }
  }
}

const cellOf = (value: number) => Math.min(gridSize - 1, Math.max(0, Math.floor(value * gridSize)));

function gridOf({ x, y }: Points): Uint32Array[] {
  const lists: number[][] = Array.from({ length: gridSize ** 2 }, () => []);
  for (let point = 0; point < x.length; point++)
    lists[cellOf(y[point]) * gridSize + cellOf(x[point])].push(point);
  return lists.map((list) => Uint32Array.from(list));
}
