// Random search, successive halving and local search in simulated time, with the models' mean predictions.

import { MARGIN, axes, line, scale } from "./draw.js";
import { seeded } from "./space.js";

const RACE_HEIGHT = 320;
const N_FULL = 100; // mean trainings to the last epoch that the budget pays for
const DURATION_MS = 9000;
const N_INITIAL = 10;
const ETA = 3;
const MOST_FAINT = 20;

// A racer yields configs with an epoch to train to and the epoch where the training was left; it is sent the accuracy.
function* randomSearch(space, draw, maxEpoch) {
  for (;;) yield { config: space.random(draw), from: 0, to: maxEpoch };
}

function* successiveHalving(space, draw, maxEpoch) {
  const rungs = [];
  for (let epoch = maxEpoch; epoch > 1; epoch = Math.max(Math.round(epoch / ETA), 1)) rungs.unshift(epoch);
  rungs.unshift(1);
  for (;;) {
    let configs = Array.from({ length: ETA ** (rungs.length - 1) }, () => space.random(draw));
    for (const [i, to] of rungs.entries()) {
      const results = [];
      for (const config of configs) results.push({ config, accuracy: yield { config, from: rungs[i - 1] || 0, to } });
      results.sort((a, b) => b.accuracy - a.accuracy);
      configs = results.slice(0, Math.max(1, Math.floor(results.length / ETA))).map((each) => each.config);
    }
  }
}

function* localSearch(space, draw, maxEpoch) {
  for (;;) {
    let [best, accuracy] = [null, -1];
    const seen = new Set(); // configs of this climb, as text
    const isNew = ({ config }) => !seen.has(JSON.stringify(config));
    const nextConfigs = () => shuffled(space.neighbors(best).filter(isNew), draw);
    for (let i = 0; i < N_INITIAL; i++) {
      const config = space.random(draw);
      seen.add(JSON.stringify(config));
      const found = yield { config, from: 0, to: maxEpoch };
      if (found > accuracy) [best, accuracy] = [config, found];
    }
    for (let queue = nextConfigs(); queue.length; ) {
      const { config } = queue.pop();
      seen.add(JSON.stringify(config));
      const found = yield { config, from: 0, to: maxEpoch };
      if (found > accuracy) {
        [best, accuracy] = [config, found];
        queue = nextConfigs();
      }
    }
  }
}

function shuffled(items, draw) {
  return items.map((item) => [draw(), item]).sort((a, b) => a[0] - b[0]).map(([, item]) => item);
}

const RACERS = {
  "random search": randomSearch,
  "successive halving": successiveHalving,
  "local search": localSearch,
};

// Return the accuracy of the best config so far over time, as steps, of one racer: advance(seconds) adds to `points`.
function startRacer(model, space, racer, seed, maxEpoch) {
  const search = racer(space, seeded(seed), maxEpoch);
  let asked = search.next().value;
  let [time, best] = [0, -Infinity];
  const points = [];
  const advance = (until) => {
    for (;;) {
      const x = model.prepare(asked.config);
      const seconds = model.answer(x, "runtime", asked.to) - (asked.from && model.answer(x, "runtime", asked.from));
      if (time + seconds > until) return;
      time += seconds;
      const accuracy = model.answer(x, "valid_acc", asked.to);
      const isFull = asked.to === maxEpoch; // an incumbent was trained in full
      if (isFull && accuracy > best) points.push([time, (best = accuracy)]);
      asked = search.next(accuracy).value;
    }
  };
  return { points, advance };
}

export class Race {
  constructor({ picture, legend, button, status }, model, space, maxEpoch) {
    Object.assign(this, { picture, legend, button, status, model, space, maxEpoch });
    this.past = [];
    this.seed = 0;
    this.clock = 0;
    this.frame = null;
    this.budget = N_FULL * this.meanRuntime();
    button.addEventListener("click", () => (this.frame === null ? this.start() : this.stop()));
  }

  meanRuntime() {
    const draw = seeded(0);
    const times = Array.from({ length: 200 }, () =>
      this.model.answer(this.model.prepare(this.space.random(draw)), "runtime", this.maxEpoch));
    return times.reduce((a, b) => a + b) / times.length;
  }

  start() {
    if (!this.running || this.clock >= this.budget) {
      if (this.running) this.past = [...this.running, ...this.past].slice(0, 3 * MOST_FAINT);
      this.clock = 0;
      this.seed += 1;
      this.running = Object.entries(RACERS).map(([name, racer], i) => ({
        name, i, ...startRacer(this.model, this.space, racer, 3 * this.seed + i, this.maxEpoch),
      }));
      this.status.textContent = "";
    }
    this.button.textContent = "Pause";
    let before = performance.now();
    const step = (now) => {
      const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
      const passed = ((now - before) / DURATION_MS) * this.budget;
      this.clock = isStill ? this.budget : Math.min(this.clock + passed, this.budget);
      before = now;
      this.running.forEach((each) => each.advance(this.clock));
      this.draw();
      if (this.clock < this.budget) this.frame = requestAnimationFrame(step);
      else this.finish();
    };
    this.frame = requestAnimationFrame(step);
  }

  stop() {
    cancelAnimationFrame(this.frame);
    this.frame = null;
    this.button.textContent = "Go on";
  }

  finish() {
    this.frame = null;
    this.button.textContent = "Race again";
    const results = this.running.map(({ name, points }) => `${name} ${points[points.length - 1]?.[1].toFixed(1)} %`);
    this.status.textContent = `Race ${this.seed}, best validation accuracy found: ${results.join(", ")}.`;
  }

  draw(width = this.width) {
    if (!(this.width = width)) return;
    const ends = [...this.past, ...(this.running || [])].flatMap(({ points }) => points.slice(-1).map(([, v]) => v));
    const most = Math.max(...ends, 0);
    const x = scale([0, this.budget], [MARGIN.left, width - MARGIN.right]);
    const bottom = RACE_HEIGHT - MARGIN.bottom;
    const y = scale(ends.length ? [Math.max(most - 15, 0), most + 0.5] : [0, 100], [bottom, MARGIN.top]);
    const path = ({ points }, until) => {
      const rise = ([time, value], i) => (i ? [[time, points[i - 1][1]], [time, value]] : [[time, value]]);
      const steps = [...points.flatMap(rise), ...points.slice(-1).map(([, value]) => [until, value])];
      return line(steps.map(([time, value]) => [x.at(time), Math.min(y.at(value), bottom)]));
    };
    const old = this.past.map((each) => `<path class="racer${each.i} past" d="${path(each, this.budget)}"/>`);
    const now = (this.running || []).map((each) => `<path class="racer${each.i}" d="${path(each, this.clock)}"/>`);
    const title = { xTitle: "simulated time (s)", yTitle: "best validation accuracy so far (%)" };
    this.picture.innerHTML = `<svg width="${width}" height="${RACE_HEIGHT}" role="img"
      aria-label="Best validation accuracy over simulated time of three optimisers">
      ${axes({ width, height: RACE_HEIGHT, x, y, ...title })}${old.join("")}${now.join("")}</svg>`;
    const best = ({ points }) => (points.length ? ` ${points[points.length - 1][1].toFixed(1)} %` : "");
    const entry = (each) => `<span><i class="key racer${each.i}"></i>${each.name}${best(each)}</span>`;
    this.legend.innerHTML = (this.running || []).map(entry).join("");
  }
}
