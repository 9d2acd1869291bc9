// The learning curve with its predictive band, and the nearest recorded trainings.

import { MARGIN, axes, escapeText, line, scale } from "./draw.js";
import { showNumber } from "./space.js";

const CURVE_HEIGHT = 290;

// Draw predictions ({values, band} by epoch, or null) and measured curves ([{epochs, values}]) of one metric.
export function drawCurve(element, width, { maxEpoch, title, prediction, level, measured }) {
  const numbers = [
    ...(prediction ? [...prediction.values, ...(prediction.band || []).flat()] : []),
    ...measured.flatMap((each) => each.values),
  ].filter(Number.isFinite);
  const low = Math.max(Math.floor((Math.min(...numbers) - 1) / 10) * 10, 0);
  const high = Math.min(Math.ceil((Math.max(...numbers) + 1) / 10) * 10, 100);
  const x = scale([1, maxEpoch], [MARGIN.left, width - MARGIN.right - 18], { n: 6 });
  const y = scale(numbers.length ? [low, high] : [0, 100], [CURVE_HEIGHT - MARGIN.bottom, MARGIN.top]);
  x.ticks = [1, ...x.ticks.filter((tick) => Number.isInteger(tick) && tick > 1)];
  const point = (epoch, value) => [x.at(epoch), y.at(value)];
  const parts = [axes({ width, height: CURVE_HEIGHT, x, y, xTitle: "epoch", yTitle: title })];
  if (prediction?.band) {
    const ends = [0, 1].map((side) => prediction.band.map((ends, i) => point(i + 1, ends[side])));
    parts.push(`<path class="band" d="${line([...ends[0], ...ends[1].reverse()])}Z"/>`);
  }
  const labels = new Map(); // by rank, where the curve of its first training ends
  measured.forEach(({ epochs, values, rank }) => {
    const points = epochs.map((epoch, i) => point(epoch, values[i])).filter(([, py]) => Number.isFinite(py));
    if (!points.length) return;
    if (!labels.has(rank)) labels.set(rank, points[points.length - 1]);
    parts.push(`<path class="measured" d="${line(points)}"/>`);
  });
  let above = -Infinity;
  for (const [rank, [px, py]] of [...labels].sort((a, b) => a[1][1] - b[1][1])) {
    above = Math.max(py + 4, above + 12);
    parts.push(`<text class="tick" x="${px + 6}" y="${above}">${rank}</text>`);
  }
  if (prediction) {
    parts.push(`<path class="predicted" d="${line(prediction.values.map((v, i) => point(i + 1, v)))}"/>`);
  }
  const about = prediction
    ? `Predicted ${title} rises to ${showNumber(prediction.values[maxEpoch - 1])} at epoch ${maxEpoch}.`
    : `${title} of the nearest recorded trainings.`;
  element.innerHTML = `<svg width="${width}" height="${CURVE_HEIGHT}" role="img"
    aria-label="${escapeText(about)}">${parts.join("")}</svg>`;
  const entries = [
    ...(prediction ? [["predicted", "predicted mean"]] : []),
    ...(prediction?.band ? [["band", `${100 * level} % of trainings`]] : []),
    ...(measured.length ? [["measured", "nearest, measured"]] : []),
  ];
  return entries.map(([style, text]) => `<span><i class="key ${style}"></i>${text}</span>`).join("");
}

// Return the recorded configs that are nearest to a config: [{i, differences}].
export function nearest(space, configs, places, config, n) {
  const distances = space.distances(places, config);
  const found = [];
  distances.forEach((distance, i) => {
    if (found.length === n && distance >= distances[found[n - 1]]) return;
    found.push(i);
    found.sort((a, b) => distances[a] - distances[b]);
    found.length = Math.min(found.length, n);
  });
  const differences = (other) => space.searched.filter(({ name }) => other[name] !== config[name])
    .map(({ name }) => `${name} ${space.show(name, other[name])}`);
  return found.map((i) => ({ i, differences: differences(configs[i]) }));
}
