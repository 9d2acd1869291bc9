// All recorded configs: parallel coordinates and a scatter plot that share their filters, and the front.

import { domainOf, escapeText, scale } from "./draw.js";
import { FilterForm } from "./filters.js";
import { Parallel, SPREAD } from "./parallel.js";
import { Scatter, frontOf } from "./scatter.js";
import { showNumber } from "./space.js";

const MOST_FRONT = 15;
const COSTS = ["n_params", "n_macs", "runtime", "latency"];
const CLICK = 4; // pixels that a click may move

// Return the configs of the recorded columns.
function readConfigs(space, arrays) {
  const read = ({ name, choices }) => (choices.length ? (i) => choices[arrays[name][i]] : (i) => arrays[name][i]);
  const readers = space.parameters.map((parameter) => [parameter.name, read(parameter)]);
  return Array.from({ length: arrays[readers[0][0]].length }, (_, i) =>
    Object.fromEntries(readers.map(([name, value]) => [name, value(i)])));
}

export class Recorded {
  // `parts` are elements by name; `take` gets a config that was chosen.
  constructor(parts, facts, space, arrays, take) {
    Object.assign(this, { parts, facts, space, arrays, take });
    this.configs = readConfigs(space, arrays);
    this.filters = new Map();
    this.parallel = new Parallel(parts.lines, parts.linesTop, space.ops);
    this.scatter = new Scatter(parts.scatter, parts.scatterTop);
    this.form = new FilterForm(parts.form, (axis, shares) => this.filter([[axis.id, shares]]));
    const option = (name) => `<option value="${name}">${escapeText(this.title(name))}</option>`;
    parts.cost.innerHTML = COSTS.filter((name) => facts.recorded.metrics.includes(name)).map(option).join("");
    parts.cost.addEventListener("change", () => this.makeAxes());
    parts.clear.addEventListener("click", () => {
      this.filters.clear();
      this.refresh();
    });
    parts.front.addEventListener("click", ({ target }) => {
      const button = target.closest("button");
      if (button) this.take(this.configs[button.dataset.i]);
    });
    this.listen();
    this.makeAxes();
  }

  title(name) {
    const unit = this.facts.units[name];
    return name.startsWith("n_") ? unit : `${name} (${unit})`;
  }

  // Make the axes; each has positions from 0 to 1, and `back` from them to values.
  makeAxes() {
    this.filters.delete("cost");
    this.cost = this.parts.cost.value;
    const isOp = ({ name }) => Number(this.space.ops.includes(name));
    const keys = [...this.space.searched].sort((a, b) => isOp(a) - isOp(b)).map((each) => this.axisOfKey(each));
    const [cost, accuracy] = [this.axisOfMetric("cost", this.cost, true), this.axisOfMetric("valid_acc", "valid_acc")];
    this.axes = [...keys, cost, accuracy];
    for (const axis of this.axes) axis.places = Float32Array.from(axis.values, (value) => axis.position(value));
    this.form.make(this.axes);
    this.refresh();
  }

  axisOfKey(parameter) {
    const { name, choices, lower, upper } = parameter;
    const position = (value) => this.space.position(parameter, value);
    const ends = choices.length ? choices : [lower, upper];
    return {
      id: name,
      title: name,
      isChoice: choices.length > 0,
      position,
      back: (share) => lower * (upper / lower) ** share,
      marks: ends.map((value) => [position(value), this.space.show(name, value)]),
      values: this.configs.map((config) => config[name]),
      of: (config) => config[name],
    };
  }

  axisOfMetric(id, name, isLog = false) {
    const values = Array.from(this.arrays[name]);
    const { at: position, back, domain } = scale(domainOf(values, { isLog }), [0, 1], { isLog });
    const marks = domain.map((end, i) => [i, showNumber(end)]);
    return { id, title: this.title(name), position, back, domain, marks, values, of: (_, answers) => answers?.[name] };
  }

  // Set filters, [id, shares] each; what covers a whole axis is none.
  filter(changes) {
    for (const [id, shares] of changes) {
      const [low, high] = shares.map((share) => Math.min(Math.max(share, 0), 1)).sort((a, b) => a - b);
      if (low <= 0 && high >= 1) this.filters.delete(id);
      else this.filters.set(id, [low, high]);
    }
    this.refresh();
  }

  refresh() {
    const active = this.axes.filter(({ id }) => this.filters.has(id));
    const isIn = (i) => active.every(({ id, places }) => {
      const [low, high] = this.filters.get(id);
      return places[i] >= low - 1e-6 && places[i] <= high + 1e-6;
    });
    const all = this.configs.map((_, i) => i);
    this.selected = all.filter(isIn);
    this.others = active.length ? all.filter((i) => !isIn(i)) : [];
    this.front = frontOf(this.selected, this.arrays[this.cost], this.arrays.valid_acc);
    this.parts.clear.disabled = !this.filters.size;
    this.form.show(this.filters);
    this.say();
    this.later ??= requestAnimationFrame(() => {
      this.later = null;
      this.draw();
    });
  }

  say() {
    const { n_configs: n, n_shown: shown, n_trainings: trained, n_unfinished: lost } = this.facts.recorded;
    const [selected, some, all] = [this.selected.length, shown, n].map((each) => each.toLocaleString("en"));
    const of = shown < n ? `${some} shown configs (${all} are recorded)` : `${all} recorded configs`;
    const rest = lost ? `; configs without one that reached the last epoch: ${lost.toLocaleString("en")}` : "";
    const every = Math.max(1, Math.ceil(this.front.length / MOST_FRONT));
    const listed = this.front.filter((_, k) => (this.front.length - 1 - k) % every === 0);
    const omission = listed.length < this.front.length ? `, of which the table lists ${listed.length}` : "";
    this.parts.status.textContent = `${selected} of ${of} selected; ${this.front.length} on the front${omission}.
      ${trained.toLocaleString("en")} trainings are recorded${rest}.`;
    const row = (i) => {
      const accuracy = this.arrays.valid_acc[i].toFixed(1);
      const sizes = this.space.sizes.map((key) => this.configs[i][key]).join(" · ");
      const label = `Show the config with ${accuracy} %`;
      const button = `<button type="button" data-i="${i}" aria-label="${label}">show</button>`;
      const cells = [showNumber(this.arrays[this.cost][i]), accuracy, sizes, button];
      return `<tr>${cells.map((cell) => `<td>${cell}</td>`).join("")}</tr>`;
    };
    const heads = [this.title(this.cost), "validation accuracy (%)", this.space.sizes.join(" · "), ""];
    const head = heads.map((text) => `<th scope="col">${escapeText(text)}</th>`).join("");
    this.parts.front.innerHTML = `<thead><tr>${head}</tr></thead><tbody>${listed.map(row).join("")}</tbody>`;
  }

  // Say where the config is that the page shows; `answers` are its predicted metrics, or null.
  mark(config, answers) {
    Object.assign(this, { config, answers });
    this.drawTop();
  }

  resize(picture, width) {
    picture.resize(width);
    this.draw();
  }

  draw() {
    if (!this.parallel.width || !this.scatter.width) return;
    this.parallel.draw(this.axes, this.others, this.selected);
    this.scatter.draw(...this.axes.slice(-2), this.selected, this.front);
    this.drawTop();
  }

  // Draw what changes with the config.
  drawTop() {
    if (!this.scatter.x || !this.config) return;
    const values = this.axes.map((axis) => axis.of(this.config, this.answers));
    const shares = values.map((value, k) => (value === undefined ? value : this.axes[k].position(value)));
    this.parallel.drawTop(this.filters, shares);
    this.scatter.drawTop(this.filters, shares.at(-1) === undefined ? null : values.slice(-2));
  }

  listen() {
    const along = (start, end) => {
      const axis = this.parallel.axisAt(start[0]);
      const [low, high] = [start[1], end[1]].map((y) => this.parallel.shareAt(y)).sort((a, b) => a - b);
      const more = axis.isChoice ? SPREAD : 0;
      this.filter([[axis.id, [low - more, high + more]]]);
    };
    this.drag(this.parts.linesTop, along, ([x]) => this.filter([[this.parallel.axisAt(x).id, [0, 1]]]));
    const box = (start, end) => {
      const [cost, accuracy] = this.scatter.box(start, end);
      this.filter([["cost", cost], ["valid_acc", accuracy]]);
    };
    this.drag(this.parts.scatterTop, box, (at) => {
      const found = this.scatter.pick(at, this.selected);
      if (found !== undefined) this.take(this.configs[found]);
    });
  }

  // Call `brush` with both ends of a drag by mouse, pen or finger, and `click` with the place of a click or tap.
  drag(canvas, brush, click) {
    let start = null;
    let before = null; // the filters as they were, once something was brushed
    const at = (event) => [event.offsetX, event.offsetY];
    canvas.addEventListener("pointerdown", (event) => {
      if (!event.isPrimary || event.button) return;
      [start, before] = [at(event), null];
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!start || !event.isPrimary) return;
      const isClick = Math.hypot(event.offsetX - start[0], event.offsetY - start[1]) < CLICK;
      if (isClick && !before) return;
      before ??= new Map(this.filters);
      brush(start, at(event));
    });
    canvas.addEventListener("pointerup", (event) => {
      if (!start || !event.isPrimary) return;
      if (!before) click(start);
      start = null;
    });
    // The browser takes the gesture over, to scroll or to zoom: what the first moves brushed was not meant.
    canvas.addEventListener("pointercancel", (event) => {
      if (!start || !event.isPrimary) return;
      start = null;
      if (before) this.filters = before;
      this.refresh();
    });
  }
}
