// The space of configs: codes, neighbours, distances, random configs, and a config as Python.

export class Space {
  constructor(facts) {
    this.parameters = facts.parameters;
    this.byName = Object.fromEntries(facts.parameters.map((each) => [each.name, each]));
    this.searched = facts.parameters.filter((each) => each.choices.length !== 1);
    this.ops = facts.parameters.filter((each) => /^Op\d$/.test(each.name)).map((each) => each.name);
    this.sizes = facts.sizes;
    this.labels = facts.cell.labels;
    this.step = facts.step;
    this.task = facts.task.name;
    this.release = facts.without_models ? null : facts.release;
  }

  // Throw a RangeError that lists every fault of a config and an epoch, as jahs.Benchmark.query does.
  check(config, epoch, maxEpoch) {
    const faults = Object.keys(config ?? {}).filter((name) => !Object.hasOwn(this.byName, name))
      .map((name) => `${name} is not a key of a config`);
    for (const { name, choices, lower, upper } of this.parameters) {
      const value = config?.[name];
      const isInside = typeof value === "number" && lower <= value && value <= upper;
      const legal = choices.length ? `one of ${choices.join(", ")}` : `a number in [${lower}, ${upper}]`;
      if (!(choices.length ? choices.includes(value) : isInside)) faults.push(`${name} must be ${legal}`);
    }
    const isEpoch = Number.isInteger(epoch) && 1 <= epoch && epoch <= maxEpoch;
    if (!isEpoch) faults.push(`epoch must be an integer in 1..${maxEpoch}`);
    if (faults.length) throw new RangeError(faults.join("; "));
  }

  codes(config) {
    const code = ({ name, choices, codes }) =>
      choices.length ? codes[choices.indexOf(config[name])] : config[name];
    return Object.fromEntries(this.parameters.map((each) => [each.name, code(each)]));
  }

  indexOf(name, code) {
    return this.byName[name].codes.indexOf(code);
  }

  cellNumber(config) {
    return this.ops.reduce((number, op) => 5 * number + config[op], 0);
  }

  sizeNumber(config) {
    const index = (name) => this.byName[name].choices.indexOf(config[name]);
    return this.sizes.reduce((number, name) => 3 * number + index(name), 0);
  }

  // Return every config that is one move away, with its key: jahs.space().neighbors.
  neighbors(config) {
    return this.searched.flatMap((parameter) =>
      this.moves(parameter, config[parameter.name]).map((value) => ({
        key: parameter.name, value, config: { ...config, [parameter.name]: value },
      })),
    );
  }

  moves({ kind, choices, lower, upper }, value) {
    if (kind === "float") {
      return [value / this.step, value * this.step].filter((v) => lower <= v && v <= upper);
    }
    const at = choices.indexOf(value);
    if (kind === "ordinal") return choices.filter((_, i) => Math.abs(i - at) === 1);
    return choices.filter((choice) => choice !== value);
  }

  random(draw) {
    const value = ({ choices, lower, upper }) =>
      choices.length ? choices[Math.floor(draw() * choices.length)] : lower * (upper / lower) ** draw();
    return Object.fromEntries(this.parameters.map((each) => [each.name, value(each)]));
  }

  // Return where a value is on its axis, from 0 to 1.
  position({ choices, lower, upper }, value) {
    if (!choices.length) return Math.log(value / lower) / Math.log(upper / lower);
    return choices.length > 1 ? choices.indexOf(value) / (choices.length - 1) : 0;
  }

  // Return where configs are on the axis of each searched key, for `distances`.
  places(configs) {
    return this.searched.map((parameter) =>
      Float64Array.from(configs, (config) => this.position(parameter, config[parameter.name])));
  }

  // Return how far configs are from one: the mean over keys of a step from 0 to 1.
  distances(places, config) {
    const sums = new Float64Array(places[0].length);
    this.searched.forEach((parameter, k) => {
      const here = this.position(parameter, config[parameter.name]);
      const isCategorical = parameter.kind === "categorical";
      places[k].forEach((there, i) => {
        sums[i] += isCategorical ? Number(here !== there) : Math.abs(here - there);
      });
    });
    return sums.map((sum) => sum / this.searched.length);
  }

  show(name, value) {
    if (this.ops.includes(name)) return this.labels[value];
    if (typeof value === "boolean") return value ? "on" : "off";
    return typeof value === "number" ? showNumber(value) : value;
  }

  toPython(config) {
    const literal = ({ name, type }) => {
      const value = config[name];
      if (type === "bool") return value ? "True" : "False";
      if (type === "str") return JSON.stringify(value);
      return type === "float" && Number.isInteger(value) ? `${value}.0` : String(value);
    };
    const lines = this.parameters.map((each) => `    "${each.name}": ${literal(each)},`);
    const code = `config = {\n${lines.join("\n")}\n}\n`;
    if (!this.release) return code;
    // Another release answers differently, so it is refused.
    const opened = `jahs.Benchmark("${this.task}", sha256="${this.release}")`;
    return `import jahs\n\n${code}print(${opened}.query(config))\n`;
  }
}

// Return a number with three digits, never in scientific notation where it is readable without.
export function showNumber(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6) return `${Number((value / 1e6).toPrecision(3))} M`;
  if (size >= 1e4) return `${Number((value / 1e3).toPrecision(3))} k`;
  return size >= 1e-4 ? String(Number(value.toPrecision(3))) : value.toExponential(1).replace("e-", "e−");
}

// Return a generator of numbers in [0, 1) with a seed: mulberry32.
export function seeded(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
