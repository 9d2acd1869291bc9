// Parallel coordinates on a canvas: an axis for each key and metric, a line for each config.

import { clearCanvas, color } from "./draw.js";

const LINES = { height: 300, top: 46, bottom: 24, side: 40, least: 900 };
export const SPREAD = 0.04; // how far lines through one choice are spread, up and down
const LEAST_ALPHA = 0.03;

export class Parallel {
  constructor(under, over, ops) {
    Object.assign(this, { under, over, ops });
  }

  resize(width) {
    this.width = Math.max(width, LINES.least);
  }

  x(k) {
    return LINES.side + (k * (this.width - 2 * LINES.side)) / (this.axes.length - 1);
  }

  y(share) {
    return LINES.height - LINES.bottom - share * (LINES.height - LINES.top - LINES.bottom);
  }

  // Return the axis nearest to a place: a finger is wider than a line.
  axisAt(x) {
    const far = this.axes.map((_, k) => Math.abs(this.x(k) - x));
    return this.axes[far.indexOf(Math.min(...far))];
  }

  shareAt(y) {
    return (this.y(0) - y) / (this.y(0) - this.y(1));
  }

  draw(axes, others, selected) {
    this.axes = axes;
    const context = clearCanvas(this.under, this.width, LINES.height);
    const alpha = (lines) => Math.min(Math.max(40 / lines.length, LEAST_ALPHA), 0.7);
    this.drawLines(context, others, "faint", alpha(others) / 3);
    this.drawLines(context, selected, "accent", alpha(selected));
    context.globalAlpha = 1;
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "center";
    axes.forEach((axis, k) => this.drawAxis(context, axis, k));
  }

  // Draw lines; those through the same choice are spread a little.
  drawLines(context, places, style, alpha) {
    context.strokeStyle = color(style);
    context.globalAlpha = alpha;
    for (const i of places) {
      const aside = (((i * 7919) % 97) / 97 - 0.5) * 2 * SPREAD;
      context.beginPath();
      this.axes.forEach((axis, k) => {
        const y = this.y(axis.places[i] + (axis.isChoice ? aside : 0));
        if (Number.isFinite(y)) context.lineTo(this.x(k), y);
      });
      context.stroke();
    }
  }

  drawAxis(context, axis, k) {
    const x = this.x(k);
    context.strokeStyle = context.fillStyle = color("ink");
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x, this.y(0));
    context.lineTo(x, this.y(1));
    context.stroke();
    context.fillText(axis.title, x, k % 2 ? 25 : 11);
    context.lineWidth = 4;
    context.strokeStyle = color("card");
    const isRepeated = this.ops.indexOf(axis.id) > 0; // the first operation's marks hold for all
    for (const [share, text] of isRepeated ? [] : axis.marks) {
      const y = this.y(share) + (share === 0 ? 14 : share === 1 ? -5 : 4);
      context.strokeText(text, x, y);
      context.fillText(text, x, y);
    }
  }

  // Draw the filters and the line of one config, of which `shares` are where it is on each axis.
  drawTop(filters, shares) {
    const context = clearCanvas(this.over, this.width, LINES.height);
    context.fillStyle = context.strokeStyle = color("ink");
    this.axes.forEach(({ id }, k) => {
      if (!filters.has(id)) return;
      const [low, high] = filters.get(id).map((share) => this.y(share));
      const box = [this.x(k) - 9, high - 3, 18, low - high + 6];
      context.globalAlpha = 0.14;
      context.fillRect(...box);
      context.globalAlpha = 1;
      context.strokeRect(...box);
    });
    for (const [width, style] of [[5, "card"], [2, "ink"]]) {
      Object.assign(context, { lineWidth: width, strokeStyle: color(style) });
      context.beginPath();
      shares.forEach((share, k) => share === undefined || context.lineTo(this.x(k), this.y(share)));
      context.stroke();
    }
  }
}
