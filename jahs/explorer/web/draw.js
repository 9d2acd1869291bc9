// What every picture needs: scales, ticks, axes, and text that is safe inside of markup.

import { showNumber } from "./space.js";

export const MARGIN = { left: 52, right: 14, top: 24, bottom: 40 };

export function escapeText(text) {
  const entities = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
  return String(text).replace(/[&<>"]/g, (character) => entities[character]);
}

// Return a map of a domain to pixels, with its ticks.
export function scale(domain, range, { isLog = false, n = 5 } = {}) {
  const [low, high] = isLog ? domain.map(Math.log10) : domain;
  const at = (value) => {
    const share = ((isLog ? Math.log10(value) : value) - low) / (high - low || 1);
    return range[0] + share * (range[1] - range[0]);
  };
  const back = (pixel) => {
    const value = low + ((pixel - range[0]) / (range[1] - range[0])) * (high - low);
    return isLog ? 10 ** value : value;
  };
  return { at, back, domain, ticks: isLog ? logTicks(low, high) : ticks(low, high, n) };
}

function ticks(low, high, n) {
  const rough = (high - low) / n || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  const first = Math.ceil(low / step - 1e-9);
  const count = Math.floor(high / step + 1e-9) - first + 1;
  return Array.from({ length: count }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}

function logTicks(low, high) {
  const factors = high - low < 1.2 ? [1, 2, 5] : high - low < 2.5 ? [1, 3] : [1];
  const powers = Array.from({ length: Math.ceil(high) - Math.floor(low) + 1 }, (_, i) => Math.floor(low) + i);
  const all = powers.flatMap((power) => factors.map((factor) => factor * 10 ** power));
  return all.filter((value) => low - 1e-9 <= Math.log10(value) && Math.log10(value) <= high + 1e-9);
}

// Return the domain of some numbers, with a little room.
export function domainOf(values, { isLog = false } = {}) {
  const known = values.filter(Number.isFinite);
  const [low, high] = [Math.min(...known), Math.max(...known)];
  if (isLog) return [low / 1.15, high * 1.15];
  const room = (high - low) * 0.04 || 1;
  return [low - room, high + room];
}

// Return the axes of a picture as SVG: grid, numbers, and titles with units.
export function axes({ width, height, x, y, xTitle, yTitle }) {
  const bottom = height - MARGIN.bottom;
  const number = (value) => escapeText(showNumber(value));
  const columns = x.ticks.map((tick) =>
    `<text class="tick" x="${x.at(tick)}" y="${bottom + 16}" text-anchor="middle">${number(tick)}</text>`);
  const rows = y.ticks.map((tick) => `
    <line class="grid" x1="${MARGIN.left}" x2="${width - MARGIN.right}" y1="${y.at(tick)}" y2="${y.at(tick)}"/>
    <text class="tick" x="${MARGIN.left - 8}" y="${y.at(tick) + 4}" text-anchor="end">${number(tick)}</text>`);
  return `${rows.join("")}${columns.join("")}
    <line class="axis" x1="${MARGIN.left}" x2="${width - MARGIN.right}" y1="${bottom}" y2="${bottom}"/>
    <text class="title" x="${width - MARGIN.right}" y="${height - 6}" text-anchor="end">${escapeText(xTitle)}</text>
    <text class="title" x="0" y="12">${escapeText(yTitle)}</text>`;
}

export function line(points) {
  return points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
}

// Call `draw` with the width of an element, now and whenever it changes.
export function watchWidth(element, draw) {
  let width = 0;
  new ResizeObserver(([entry]) => {
    const found = Math.round(entry.contentRect.width);
    if (found && found !== width) draw((width = found));
  }).observe(element);
}

// Return a canvas context of this size in CSS pixels, cleared, sharp on any screen.
export function clearCanvas(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const context = canvas.getContext("2d");
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  Object.assign(context, { globalAlpha: 1, lineWidth: 1 });
  return context;
}

const COLORS = {};

// Read the colours of the style sheet, which follow the reader's light or dark mode.
export function readColors() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["card", "ink", "muted", "faint", "grid", "accent"]) {
    COLORS[name] = style.getPropertyValue(`--${name}`).trim();
  }
}

export function color(name) {
  return COLORS[name];
}

// Set the markup of an element, if it is another.
export function setMarkup(element, markup) {
  if (element.shownMarkup !== markup) element.innerHTML = element.shownMarkup = markup;
}

export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
