// What one change of each key would do: a bar for each neighbour, and a click takes it.

import { setText } from "./draw.js";

const ROW = `<span class="key-name"></span><span></span><span class="track"><i></i></span><span class="gain"></span>`;

export class Neighbors {
  constructor(element, space, take) {
    Object.assign(this, { element, space });
    element.addEventListener("click", ({ target }) => {
      const row = this.rows.indexOf(target.closest("button"));
      if (row >= 0) take(this.shown[row].config);
    });
    this.rows = [];
  }

  // Show what `space.neighbors` returned with the gain of each, in points.
  show(neighbors) {
    this.shown = neighbors;
    while (this.rows.length < neighbors.length) this.addRow();
    const most = Math.max(1, ...neighbors.map(({ gain }) => Math.abs(gain)));
    const best = neighbors.reduce((a, b) => (b.gain > a.gain ? b : a));
    this.rows.forEach((row, i) => {
      row.hidden = i >= neighbors.length;
      if (!row.hidden) this.fill(row, neighbors[i], neighbors[i - 1]?.key, most, neighbors[i] === best);
    });
  }

  addRow() {
    const row = document.createElement("button");
    row.type = "button";
    row.innerHTML = ROW;
    this.rows.push(row);
    this.element.append(row);
  }

  fill(row, { key, value, gain }, before, most, isBest) {
    const text = this.space.show(key, value);
    const size = Math.abs(gain).toFixed(1);
    const [name, choice, track, number] = row.children;
    const op = this.space.ops.indexOf(key);
    const column = op < 0 ? "of-key" : op < 3 ? "of-cell" : "of-cell-too";
    row.className = `${column} ${isBest && gain > 0 ? "best" : ""}`;
    row.setAttribute("aria-label", `${key} ${text}: ${gain < 0 ? "minus" : "plus"} ${size} points`);
    setText(name, key === before ? "" : key);
    setText(choice, text);
    track.firstChild.style.transform = `scaleX(${gain / most})`;
    setText(number, `${gain < 0 ? "−" : "+"}${size}`);
  }
}
