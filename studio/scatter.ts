// Many points on a canvas, zoomed and moved: drawn pixel by pixel, which a hundred thousand of them need to follow the
// pointer. Knows nothing of labels.

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

/** Free on every side of the whole map, as a share of the canvas. */
const edge = 0.02;
const mostScale = 200;
/** Names at most, and points that are tried for them. */
const [mostNames, namesTried] = [28, 60];

export class Scatter {
  readonly #canvas: HTMLCanvasElement;
  readonly #points: Points;
  /** The heaviest first. */
  readonly #order: Uint32Array;
  #image = new ImageData(1, 1);
  #scale = 1;
  #left = 0;
  #top = 0;
  #shown: Shown = { chosen: [], nameOf: () => '' };
  #frame = 0;

  constructor(canvas: HTMLCanvasElement, points: Points) {
    this.#canvas = canvas;
    this.#points = points;
    const { x, weight } = points;
    this.#order = Uint32Array.from({ length: x.length }, (_, i) => i).sort((a, b) => weight[b] - weight[a]);
  }

  show(shown: Shown): void {
    this.#shown = shown;
    this.draw();
  }

  /** About a place in the canvas, in CSS pixels. */
  zoom(factor: number, px = this.#canvas.clientWidth / 2, py = this.#canvas.clientHeight / 2): void {
    const before = this.#scale;
    this.#scale = Math.min(mostScale, Math.max(1, before * factor));
    const grown = this.#scale / before;
    this.move((px - this.#left) * (1 - grown), (py - this.#top) * (1 - grown));
  }

  move(dx: number, dy: number): void {
    this.#left += dx;
    this.#top += dy;
    // Something of the map is always to be seen.
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    const clamp = (value: number, size: number) =>
      Math.min(size / 2, Math.max(size * (1 - this.#scale) - size / 2, value));
    this.#left = clamp(this.#left, width);
    this.#top = clamp(this.#top, height);
    this.draw();
  }

  /** Puts a point into the middle. */
  centre(point: number, scale = Math.max(this.#scale, 6)): void {
    this.#scale = scale;
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    const [x, y] = this.#place(point);
    this.move(width / 2 - x, height / 2 - y);
  }

  whole(): void {
    [this.#scale, this.#left, this.#top] = [1, 0, 0];
    this.draw();
  }

  /** The point nearest to a place, if one is near. */
  nearest(px: number, py: number, reach = 14): number | undefined {
    const { x, y } = this.#points;
    const { toX, toY } = this.#transform();
    let [best, distance] = [undefined as number | undefined, reach ** 2];
    for (let point = 0; point < x.length; point++) {
      const own = (toX(x[point]) - px) ** 2 + (toY(y[point]) - py) ** 2;
      if (own < distance) [best, distance] = [point, own];
    }
    return best;
  }

  /** Points to be seen now, the heaviest first. */
  visible(most: number, among?: ReadonlySet<number>): number[] {
    const { clientWidth, clientHeight } = this.#canvas;
    const { x, y } = this.#points;
    const { toX, toY } = this.#transform();
    const seen: number[] = [];
    for (const point of this.#order) {
      if (seen.length === most) break;
      const [px, py] = [toX(x[point]), toY(y[point])];
      if (px < 0 || px > clientWidth || py < 0 || py > clientHeight) continue;
      if (!among || among.has(point)) seen.push(point);
    }
    return seen;
  }

  draw(): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = requestAnimationFrame(() => this.#paint());
  }

  /** From the map to CSS pixels. */
  #transform() {
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    const [scale, left, top] = [this.#scale, this.#left, this.#top];
    const inset = (value: number) => edge + (1 - 2 * edge) * value;
    return {
      toX: (x: number) => inset(x) * width * scale + left,
      toY: (y: number) => inset(y) * height * scale + top,
    };
  }

  #place(point: number): [number, number] {
    const { toX, toY } = this.#transform();
    return [toX(this.#points.x[point]), toY(this.#points.y[point])];
  }

  #paint(): void {
    const canvas = this.#canvas;
    const context = canvas.getContext('2d');
    const ratio = devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight].map((size) => Math.round(size * ratio));
    if (!context || width === 0 || height === 0) return;
    if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
    if (this.#image.width !== width || this.#image.height !== height)
      this.#image = new ImageData(width, height);
    const style = getComputedStyle(canvas);
    const colour = (name: string) => style.getPropertyValue(name);
    context.fillStyle = colour('--second');
    // The canvas gives colours back as #rrggbb.
    this.#stampAll(Number.parseInt(String(context.fillStyle).slice(1), 16), ratio);
    context.putImageData(this.#image, 0, 0);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.font = `600 12px ${colour('--font')}`;
    context.strokeStyle = colour('--panel');
    context.lineWidth = 3;
    context.lineJoin = 'round';
    context.fillStyle = colour('--accent');
    this.#markChosen(context);
    this.#writeNames(context, colour('--accent'), colour('--ink'));
  }

  /** All points have one colour: only how much of it is at each pixel is reckoned. */
  #stampAll(rgb: number, ratio: number): void {
    const { x, y, weight } = this.#points;
    const { toX, toY } = this.#transform();
    const { found } = this.#shown;
    const { data, width, height } = this.#image;
    // Red comes first in memory, so last in a number: browsers run on little-endian machines.
    new Uint32Array(data.buffer).fill(((rgb & 255) << 16) | (rgb & 0xff00) | (rgb >> 16));
    const crowded = Math.min(1, Math.max(0.4, Math.sqrt(6000 / x.length)));
    const grown = ratio * Math.min(2.5, crowded * (1 + Math.log2(this.#scale) / 2.5));
    for (let point = 0; point < x.length; point++) {
      const [px, py] = [toX(x[point]) * ratio, toY(y[point]) * ratio];
      const isFound = found?.has(point);
      const radius = Math.max(isFound ? 2.5 * ratio : 0, (0.9 + 2 * weight[point]) * grown);
      if (px < -radius || py < -radius || px > width + radius || py > height + radius) continue;
      const strength = isFound ? 0.95 : found ? 0.06 : 0.35 + 0.5 * weight[point];
      stamp(this.#image, px, py, radius, strength);
    }
  }

  #markChosen(context: CanvasRenderingContext2D): void {
    for (const point of this.#shown.chosen) {
      const [px, py] = this.#place(point);
      context.beginPath();
      context.arc(px, py, 5, 0, 7);
      context.fill();
    }
  }

  /** Names of the chosen points beside them, of the heaviest above them, where there is room. */
  #writeNames(context: CanvasRenderingContext2D, ofChosen: string, ofOthers: string): void {
    const { found, chosen, nameOf } = this.#shown;
    const others = this.visible(namesTried, found).filter((point) => !chosen.includes(point));
    const taken: [number, number, number][] = [];
    for (const [i, point] of [...chosen, ...others].entries()) {
      if (taken.length === mostNames) return;
      const isChosen = i < chosen.length;
      const [px, py] = this.#place(point);
      const width = context.measureText(nameOf(point)).width + 8;
      const [left, base] = isChosen ? [px + 5, py + 4] : [px - width / 2, py - 6];
      if (left < 0 || left + width > this.#canvas.clientWidth || base < 10) continue;
      if (taken.some(([a, b, w]) => Math.abs(b - base) < 16 && left < a + w && a < left + width)) continue;
      taken.push([left, base, width]);
      context.fillStyle = isChosen ? ofChosen : ofOthers;
      context.strokeText(nameOf(point), left + 4, base);
      context.fillText(nameOf(point), left + 4, base);
    }
  }
}

/** A disc with a soft rim, over what is there. */
function stamp({ data, width, height }: ImageData, px: number, py: number, radius: number, strength: number) {
  const reach = radius + 0.5;
  const [fromX, toX] = [Math.max(0, Math.floor(px - reach)), Math.min(width - 1, Math.floor(px + reach))];
  const [fromY, toY] = [Math.max(0, Math.floor(py - reach)), Math.min(height - 1, Math.floor(py + reach))];
  for (let row = fromY; row <= toY; row++) {
    for (let column = fromX; column <= toX; column++) {
      const inside = reach - Math.sqrt((column + 0.5 - px) ** 2 + (row + 0.5 - py) ** 2);
      if (inside <= 0) continue;
      const at = 4 * (row * width + column) + 3;
      data[at] += (255 - data[at]) * strength * Math.min(1, inside);
    }
  }
}
