// The models of a release: a config and an epoch in, the metrics that Python answers out.

const N_CELLS = 15625;
const N_COUNTS = 7;

// Regression forests over the same row of features; see jahs/models/forest/flat.py for the format.
class Forest {
  constructor(arrays, prefix) {
    const { split_feature: feature, split_threshold: threshold, node_split: split, leaf_value: leaf,
      tree_start: treeStart, forest_start: forestStart, base_score: base } = Object.fromEntries(
      Object.entries(arrays)
        .filter(([name]) => name.startsWith(prefix))
        .map(([name, array]) => [name.slice(prefix.length), array]),
    );
    Object.assign(this, { treeStart, forestStart, base });
    this.feature = new Uint16Array(split.length);
    this.left = new Int32Array(split.length); // 0 for a leaf; the right child is the next one
    this.number = new Float32Array(split.length); // the threshold of an inner node, the value of a leaf
    let leaves = 0;
    for (let tree = 0; tree < treeStart.length - 1; tree++) {
      let inner = 0;
      for (let node = treeStart[tree]; node < treeStart[tree + 1]; node++) {
        if (split[node] === feature.length) {
          this.number[node] = leaf[leaves++];
        } else {
          this.feature[node] = feature[split[node]];
          this.number[node] = threshold[split[node]];
          this.left[node] = treeStart[tree] + 2 * inner++ + 1;
        }
      }
    }
  }

  // Return the answer of forest k: its base score and leaves, added one by one in float32.
  answer(row, k) {
    const { feature, left, number, treeStart } = this;
    let sum = this.base[k];
    for (let tree = this.forestStart[k]; tree < this.forestStart[k + 1]; tree++) {
      let node = treeStart[tree];
      for (let child = left[node]; child !== 0; child = left[node]) {
        node = row[feature[node]] < number[node] ? child : child + 1;
      }
      sum = Math.fround(sum + number[node]);
    }
    return sum;
  }
}

export class Model {
  // `features` has a function for each pack of forests, which Python wrote from its own formulas.
  constructor(facts, arrays, space, features) {
    Object.assign(this, { facts, arrays, space, features });
    this.forests = facts.widths.map((_, i) => new Forest(arrays, `forest${i}_`));
    this.rows = facts.widths.map((width) => new Float32Array(width));
    this.filled = facts.widths.map(() => []);
    this.metrics = Object.keys(facts.metrics);
  }

  // Return everything that features of a config are made of, but for the epoch.
  prepare(config) {
    const x = this.space.codes(config);
    const cell = this.space.cellNumber(config);
    const size = this.space.sizeNumber(config);
    const depth = Math.floor(size / 9);
    for (const [name, ofDepth] of Object.entries(this.facts.facts)) {
      const code = this.arrays[`${name}_codes`][ofDepth ? depth * N_CELLS + cell : cell];
      x[name] = this.arrays[`${name}_values`][code];
    }
    for (const suffix of ["", "_of_class"]) {
      const place = (size * N_COUNTS + x[`n_conv3x3${suffix}`]) * N_COUNTS + x[`n_conv1x1${suffix}`];
      x[`n_params${suffix}`] = this.arrays.n_params[place];
      x[`n_macs${suffix}`] = this.arrays.n_macs[place];
    }
    x.LearningRate = Math.fround(x.LearningRate);
    x.WeightDecay = Math.fround(x.WeightDecay);
    return x;
  }

  // Return a metric of what `prepare` returned.
  answer(x, name, epoch) {
    const { pack, forest, per_epoch: perEpoch, transform } = this.facts.metrics[name];
    const value = invert(transform, this.forests[pack].answer(this.row(x, epoch, pack), forest));
    return perEpoch ? value * epoch : value;
  }

  row(x, epoch, pack) {
    const [of, at] = this.filled[pack];
    if (of !== x || at !== epoch) {
      x.epoch = epoch;
      x.schedule_spent = this.facts.schedule[0][epoch];
      x.schedule_now = this.facts.schedule[1][epoch];
      this.features[pack](x, this.rows[pack]);
      this.filled[pack] = [x, epoch];
    }
    return this.rows[pack];
  }

  // Return the ends of the interval that holds one more training; null if the release has no noise.
  band(x, name, epoch, prediction) {
    const of = this.facts.band?.metrics[name];
    if (!of) return null;
    const { levels, rates } = this.facts.band;
    const y = Math.min(Math.max(prediction, 0), 100);
    const sizes = this.space.sizes.map((key) => of[key][this.space.indexOf(key, x[key])]);
    const [first, last] = [of.level, of.last].map((table) => between(levels, table, y));
    const spread =
      (first + (last - first) * (epoch / of.epoch.length)) * of.epoch[epoch - 1] * sizes[0] * sizes[1] * sizes[2] *
      between(rates, of.rate, x.LearningRate);
    const t = (y - 50) / 51;
    const z = t / Math.sqrt(1 - t * t);
    return [-1, 1].map((side) => fromLine(z + side * Math.min(spread, 1.5) * of.shift));
  }
}

// Undo a BoundedTransform, jahs/models/bounds.py.
function invert(transform, answer) {
  if (transform === null) return answer;
  const { lower, upper, slope, margin } = transform;
  const x = slope * answer;
  const small = Math.exp(-Math.abs(x));
  const share = (x < 0 ? small : 1) / (1 + small);
  const y = lower + ((share - margin) * (upper - lower)) / (1 - 2 * margin);
  return Math.min(Math.max(y, lower), upper);
}

// Interpolate a table, which stays what it is beyond its knots.
function between(knots, table, at) {
  let i = 0;
  while (i < knots.length - 2 && at >= knots[i + 1]) i++;
  const share = Math.min(Math.max((at - knots[i]) / (knots[i + 1] - knots[i]), 0), 1);
  return table[i] + (table[i + 1] - table[i]) * share;
}

function fromLine(z) {
  return Math.min(Math.max(50 + (51 * z) / Math.sqrt(1 + z * z), 0), 100);
}
