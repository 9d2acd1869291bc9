// Measured accuracy against cost on a canvas, with the front.

import { MARGIN, clearCanvas, color, scale } from "./draw.js";
import { showNumber } from "./space.js";

const SCATTER_HEIGHT = 440;
const NEAR = 14; // pixels from a point

// Return the places of what nothing dominates: less cost and more accuracy, in the order of cost.
export function frontOf(places, cost, accuracy) {
  const known = places.filter((i) => Number.isFinite(cost[i]) && Number.isFinite(accuracy[i]));
  known.sort((a, b) => cost[a] - cost[b] || accuracy[b] - accuracy[a]);
  let best = -Infinity;
  return known.filter((i) => accuracy[i] > best && ((best = accuracy[i]), true));
}

export class Scatter {
  constructor(under, over) {
    Object.assign(this, { under, over });
  }

  resize(width) {
    this.width = width;
  }

  draw(cost, accuracy, selected, front) {
    Object.assign(this, { cost, accuracy });
    this.x = scale(cost.domain, [MARGIN.left, this.width - MARGIN.right], { isLog: true });
    this.y = scale(accuracy.domain, [SCATTER_HEIGHT - MARGIN.bottom, MARGIN.top]);
    const context = clearCanvas(this.under, this.width, SCATTER_HEIGHT);
    this.drawAxes(context);
    this.drawDots(context, cost.values.keys(), "faint", 0.25, 1.8);
    this.drawDots(context, selected, "accent", 0.55, 2.2);
    context.globalAlpha = 1;
    context.strokeStyle = color("ink");
    context.lineWidth = 1.5;
    context.beginPath();
    front.forEach((i, k) => {
      const [x, y] = this.at(i);
      if (k) context.lineTo(x, this.at(front[k - 1])[1]);
      context.lineTo(x, y);
    });
    context.stroke();
    this.drawDots(context, front, "ink", 1, 3);
  }

  at(i) {
    return [this.x.at(this.cost.values[i]), this.y.at(this.accuracy.values[i])];
  }

  drawAxes(context) {
    const right = this.width - MARGIN.right;
    context.font = "12px system-ui, sans-serif";
    context.fillStyle = color("muted");
    context.strokeStyle = color("grid");
    context.textAlign = "right";
    for (const tick of this.y.ticks) {
      context.beginPath();
      context.moveTo(MARGIN.left, this.y.at(tick));
      context.lineTo(right, this.y.at(tick));
      context.stroke();
      context.fillText(showNumber(tick), MARGIN.left - 8, this.y.at(tick) + 4);
    }
    context.fillText(this.cost.title, right, SCATTER_HEIGHT - 6);
    context.textAlign = "center";
    const below = SCATTER_HEIGHT - MARGIN.bottom + 16;
    for (const tick of this.x.ticks) context.fillText(showNumber(tick), this.x.at(tick), below);
    context.textAlign = "left";
    context.fillText("measured validation accuracy (%)", 0, 12);
  }

  drawDots(context, places, style, alpha, radius) {
    context.fillStyle = color(style);
    context.globalAlpha = alpha;
    for (const i of places) {
      const [x, y] = this.at(i);
      if (!Number.isFinite(x + y)) continue;
      context.beginPath();
      context.arc(x, y, radius, 0, 7);
      context.fill();
    }
  }

  // Draw the box of the filters, and a ring where a prediction is ([cost, accuracy], or null).
  drawTop(filters, prediction) {
    const context = clearCanvas(this.over, this.width, SCATTER_HEIGHT);
    context.strokeStyle = color("ink");
    if (filters.has("cost") || filters.has("valid_acc")) {
      const [left, right] = (filters.get("cost") || [0, 1]).map((share) => this.x.at(this.cost.back(share)));
      const [low, high] = (filters.get("valid_acc") || [0, 1]).map((share) => this.y.at(this.accuracy.back(share)));
      context.strokeRect(left, high, right - left, low - high);
    }
    if (!prediction) return;
    context.lineWidth = 2;
    context.beginPath();
    context.arc(this.x.at(prediction[0]), this.y.at(prediction[1]), 7, 0, 7);
    context.stroke();
  }

  // Return the shares of both axes that a box covers.
  box(start, end) {
    const along = (axis, pixels, back) => pixels.map((pixel) => axis.position(back(pixel)));
    return [
      along(this.cost, [start[0], end[0]], this.x.back),
      along(this.accuracy, [start[1], end[1]], this.y.back),
    ];
  }

  // Return which of some configs is at a place, if any.
  pick([x, y], places) {
    const far = (i) => Math.hypot(this.at(i)[0] - x, this.at(i)[1] - y);
    const near = places.filter((i) => far(i) < NEAR).sort((a, b) => far(a) - far(b));
    return near[0];
  }
}
