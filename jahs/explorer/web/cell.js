// The cell as a drawing: nodes on a line, the longer edges above and below; dead edges are pale. The words of a short
// edge are above and below it, as both would not fit between two nodes.

import { escapeText, setMarkup } from "./draw.js";

const CELL_SIZE = [520, 232];
const LINE = 140;
const PLACES = [0, 24, 181, 339, 496];
const RISES = { "1-3": 60, "2-4": -60, "1-4": 110 };

// Return the places of edges that are on no path without a zero.
function deadEdges(facts, ops) {
  const alive = new Set(facts.paths.filter((path) => path.every((edge) => ops[edge] !== facts.zero)).flat());
  return facts.edges.map((_, edge) => edge).filter((edge) => !alive.has(edge));
}

export function drawCell(element, facts, ops) {
  const dead = deadEdges(facts, ops);
  const words = ops.map((op, i) => `Op${i + 1} ${facts.labels[op]}${dead.includes(i) ? " (dead)" : ""}`);
  const edges = facts.edges.map((edge, i) => drawEdge(edge, i, ops[i], facts.labels[ops[i]], dead.includes(i)));
  const nodes = PLACES.slice(1).map((x, i) => `
    <circle class="node" cx="${x}" cy="${LINE}" r="16"/>
    <text class="number" x="${x}" y="${LINE + 5}" text-anchor="middle">${i + 1}</text>`);
  setMarkup(element, `<svg class="cell" viewBox="0 0 ${CELL_SIZE.join(" ")}" role="img"
    aria-label="Cell: ${escapeText(words.join(", "))}">${edges.join("")}${nodes.join("")}</svg>`);
}

function drawEdge([source, target], i, op, label, isDead) {
  const [left, right] = [PLACES[source], PLACES[target]];
  const rise = RISES[`${source}-${target}`] || 0;
  const up = Math.sign(rise);
  const height = LINE - up * 16 - (rise - up * 16) / 0.75;
  const path = rise
    ? `M${left + 8} ${LINE - up * 13}C${left + 45} ${height} ${right - 45} ${height} ${right - 8} ${LINE - up * 13}`
    : `M${left + 17} ${LINE}H${right - 17}`;
  const middle = (left + right) / 2;
  const write = (text, y) =>
    `<text class="label" x="${middle}" y="${y}" text-anchor="middle">${escapeText(text)}</text>`;
  const text = `Op${i + 1} ${label}`;
  const width = 16 + 8.2 * text.length;
  const words = rise
    ? `<rect class="plate" x="${middle - width / 2}" y="${LINE - rise - 11}" width="${width}" height="22"/>
      ${write(text, LINE - rise + 4)}`
    : write(`Op${i + 1}`, LINE - 8) + write(label, LINE + 19);
  return `<g class="op${op}${isDead ? " dead" : ""}"><path class="edge" d="${path}"/>${words}</g>`;
}
