// The page: controls, state, and what is drawn anew when the config changes.

import { decodeBase64, inflate, readFacts, unpack } from "./data.js";
import { drawCell } from "./cell.js";
import { drawCurve, nearest } from "./curve.js";
import { escapeText, readColors, setMarkup, setText, watchWidth } from "./draw.js";
import { Model } from "./model.js";
import { Neighbors } from "./neighbors.js";
import { Race } from "./race.js";
import { Recorded } from "./recorded.js";
import { Space, seeded, showNumber } from "./space.js";

const N_NEAREST = 3;
const SPEAK_AFTER_MS = 700; // once a slider rests
const SLIDER_STEPS = 1000;
const TILES = [
  ["valid_acc", "validation accuracy", "%"],
  ["test_acc", "test accuracy", "%"],
  ["runtime", "training time", "s"],
  ["latency", "latency", "s"],
  ["n_params", "parameters, computed", ""],
  ["n_macs", "multiply-adds, computed", ""],
];

const facts = readFacts();
const INSTEAD = facts.recorded ? "There are no predictions; what was recorded is shown." : "There are no predictions.";
const space = new Space(facts);
const maxEpoch = facts.task.max_epoch;
const part = (id) => document.getElementById(id);
const blob = (id) => decodeBase64(part(`data-${id}`).textContent);
const draw = seeded(Date.now());

const state = { config: null, model: null, recorded: null, arrays: null, metric: "valid_acc" };

function start() {
  readColors();
  makeControls();
  if (facts.recorded) showRecorded();
  else document.body.classList.add("without-recorded");
  const parameters = Object.fromEntries(space.parameters.map((each) => [each.name, each.default]));
  choose(facts.reference_config || parameters);
  watchWidth(part("curve"), (width) => showCurve(width));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    readColors();
    state.recorded?.draw();
  });
  part("old").remove(); // a browser that lacks anything up to here has stopped, and shows it after a while
  loadModels().catch((error) => notice(`The models cannot be read: ${error.message}. ${INSTEAD}`));
}

function notice(text) {
  part("notice").textContent = text;
  part("notice").hidden = false;
  document.body.classList.add("without-models");
}

async function loadModels() {
  if (facts.without_models) return notice(`${facts.without_models} ${INSTEAD}`);
  if (typeof DecompressionStream === "undefined") {
    return notice(`This browser cannot decompress the models: it has no DecompressionStream. ${INSTEAD}`);
  }
  const arrays = unpack(facts.models.arrays, await inflate(blob("models")));
  state.model = new Model(facts.models, arrays, space, features);
  const has = (...names) => names.every((name) => state.model.metrics.includes(name));
  part("neighbors-section").hidden = !has("valid_acc");
  part("race-section").hidden = !has("valid_acc", "runtime");
  if (has("valid_acc")) state.neighbors = new Neighbors(part("neighbors"), space, choose);
  if (has("valid_acc", "runtime")) {
    const names = ["picture", "legend", "button", "status"];
    const parts = Object.fromEntries(names.map((name) => [name, part(`race-${name}`)]));
    state.race = new Race(parts, state.model, space, maxEpoch);
    watchWidth(parts.picture, (width) => state.race.draw(width));
  }
  window.jahs = { query };
  update();
  document.body.dataset.ready = "true";
}

// Answer as jahs.Benchmark.query: every metric of a config at an epoch. For the browser's console, and for tests.
function query(config, epoch = maxEpoch) {
  space.check(config, epoch, maxEpoch);
  return answersOf(state.model.prepare(config), epoch);
}

function answersOf(x, epoch) {
  const { model } = state;
  const learned = model.metrics.map((name) => [name, model.answer(x, name, epoch)]);
  return { ...Object.fromEntries(learned), n_params: x.n_params, n_macs: x.n_macs };
}

function makeControls() {
  const control = (parameter) => {
    const { name, choices } = parameter;
    if (!choices.length) {
      return `<div class="field"><label for="in-${name}">${name}</label><output id="out-${name}"></output>
        <input type="range" id="in-${name}" name="${name}" min="0" max="${SLIDER_STEPS}" step="1"></div>`;
    }
    const text = (choice) => escapeText(space.show(name, choice));
    if (choices.length > 3) {
      const options = choices.map((choice, i) => `<option value="${i}">${text(choice)}</option>`);
      return `<div class="field op"><label for="in-${name}">${name}</label>
        <select id="in-${name}" name="${name}">${options.join("")}</select></div>`;
    }
    const radios = choices.map((choice, i) =>
      `<label><input type="radio" name="${name}" value="${i}"><span>${text(choice)}</span></label>`);
    return `<fieldset class="field"><legend>${name}</legend><div class="segments">${radios.join("")}</div></fieldset>`;
  };
  const isOp = ({ name }) => space.ops.includes(name);
  part("keys").innerHTML = space.searched.filter((each) => !isOp(each)).map(control).join("");
  part("ops").innerHTML = space.searched.filter(isOp).map(control).join("");
  part("controls").addEventListener("input", ({ target }) => {
    const parameter = space.byName[target.name];
    const { choices, lower, upper } = parameter;
    const onScale = () => Number((lower * (upper / lower) ** (target.value / SLIDER_STEPS)).toPrecision(4));
    const value = choices.length ? choices[Number(target.value)] : Math.min(Math.max(onScale(), lower), upper);
    state.config = { ...state.config, [target.name]: value };
    showValue(parameter);
    update();
  });
  part("controls").addEventListener("submit", (event) => event.preventDefault());
  part("random").addEventListener("click", () => choose(space.random(draw)));
  part("reference").hidden = !facts.reference_config;
  part("reference").addEventListener("click", () => choose(facts.reference_config));
  part("copy").addEventListener("click", copy);
  part("metric").addEventListener("change", ({ target }) => {
    state.metric = target.value;
    update();
  });
}

async function copy() {
  const text = space.toPython(state.config);
  try {
    await navigator.clipboard.writeText(text);
    part("said").textContent = "Copied.";
  } catch {
    part("python").value = text;
    part("python").hidden = false;
    part("python").select();
    part("said").textContent = "Press Ctrl+C to copy.";
  }
}

// Show a config, in the controls too.
function choose(config) {
  state.config = { ...config };
  for (const parameter of space.searched) {
    const { name, choices } = parameter;
    const value = config[name];
    if (!choices.length) part(`in-${name}`).value = Math.round(SLIDER_STEPS * space.position(parameter, value));
    else if (choices.length > 3) part(`in-${name}`).value = choices.indexOf(value);
    else part("controls").querySelector(`[name="${name}"][value="${choices.indexOf(value)}"]`).checked = true;
    showValue(parameter);
  }
  update();
}

function showValue({ name, choices }) {
  if (choices.length) return;
  const text = showNumber(state.config[name]);
  part(`out-${name}`).textContent = text;
  part(`in-${name}`).setAttribute("aria-valuetext", text);
}

// Draw everything that depends on the config.
function update() {
  const { config, model } = state;
  part("said").textContent = "";
  part("python").hidden = true;
  drawCell(part("cell"), facts.cell, space.ops.map((op) => config[op]));
  let answers = null;
  if (model) {
    const x = model.prepare(config);
    answers = answersOf(x, maxEpoch);
    state.prediction = predictCurve(x);
    showTiles(x, answers);
    showNeighbors(answers);
  }
  if (facts.recorded) showNearest();
  showCurve();
  state.recorded?.mark(config, answers);
}

function predictCurve(x) {
  const { model, metric } = state;
  if (!model.metrics.includes(metric)) return null;
  const values = Array.from({ length: maxEpoch }, (_, i) => model.answer(x, metric, i + 1));
  const band = values.map((value, i) => model.band(x, metric, i + 1, value));
  return { values, band: band[0] && band };
}

function showTiles(x, answers) {
  const tile = ([name, title, unit]) => {
    const value = name.endsWith("_acc") ? answers[name].toFixed(1) : showNumber(answers[name]);
    const band = name.endsWith("_acc") ? state.model.band(x, name, maxEpoch, answers[name]) : null;
    const level = 100 * facts.models.band?.level;
    const range = band ? `${level} %: ${band[0].toFixed(1)} to ${band[1].toFixed(1)}` : "";
    return `<div class="tile"><dt>${title}</dt><dd>${value}<small>${unit}</small></dd><span>${range}</span></div>`;
  };
  setMarkup(part("tiles"), TILES.filter(([name]) => answers[name] !== undefined).map(tile).join(""));
  clearTimeout(state.speaking);
  if (answers.valid_acc === undefined) return;
  const text = `Predicted validation accuracy ${answers.valid_acc.toFixed(1)} %`;
  state.speaking = setTimeout(() => setText(part("spoken"), text), SPEAK_AFTER_MS);
}

function showNeighbors(answers) {
  if (!state.neighbors) return;
  const { model } = state;
  const gain = (config) => model.answer(model.prepare(config), "valid_acc", maxEpoch) - answers.valid_acc;
  const isOp = ({ key }) => Number(space.ops.includes(key));
  const neighbors = space.neighbors(state.config).map((each) => ({ ...each, gain: gain(each.config) }));
  state.neighbors.show(neighbors.sort((a, b) => isOp(a) - isOp(b)));
}

function showRecorded() {
  const arrays = (state.arrays = unpack(facts.recorded.arrays, blob("recorded")));
  const names = ["lines", "linesTop", "scatter", "scatterTop", "cost", "clear", "form", "status", "front"];
  const parts = Object.fromEntries(names.map((name) => [name, part(`recorded-${name}`)]));
  state.recorded = new Recorded(parts, facts, space, arrays, (config) => choose(config));
  state.places = space.places(state.recorded.configs);
  state.trainings = state.recorded.configs.map(() => []);
  arrays.config.forEach((config, training) => state.trainings[config].push(training));
  watchWidth(part("recorded-lines-box"), (width) => state.recorded.resize(state.recorded.parallel, width));
  watchWidth(part("recorded-scatter-box"), (width) => state.recorded.resize(state.recorded.scatter, width));
  part("nearest").addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    const rank = [...part("nearest").querySelectorAll("button")].indexOf(button);
    choose(state.recorded.configs[button.dataset.i]);
    part("nearest").querySelectorAll("button")[rank].focus(); // the table was made anew
  });
}

function showNearest() {
  const { metric, arrays, recorded } = state;
  const { epochs } = facts.recorded;
  const curves = arrays[`curve_${metric}`];
  const found = nearest(space, recorded.configs, state.places, state.config, N_NEAREST);
  const values = (training) => Array.from(epochs, (_, k) => curves[training * epochs.length + k]);
  state.measured = found.flatMap(({ i }, rank) =>
    state.trainings[i].map((training) => ({ epochs, values: values(training), rank: rank + 1 })));
  const row = ({ i, differences }, rank) => `<tr><td>${rank + 1}</td>
    <td>${escapeText(differences.join(", ") || "nothing: it is recorded")}</td>
    <td>${arrays[metric] && Number.isFinite(arrays[metric][i]) ? arrays[metric][i].toFixed(1) : "–"}</td>
    <td><button type="button" data-i="${i}" aria-label="Show config ${rank + 1}">show</button></td></tr>`;
  setMarkup(part("nearest"), `<thead><tr><th scope="col"></th><th scope="col">differs in</th>
    <th scope="col">measured (%)</th><th></th></tr></thead><tbody>${found.map(row).join("")}</tbody>`);
}

function showCurve(width = state.width) {
  if (!(state.width = width)) return;
  part("curve-legend").innerHTML = drawCurve(part("curve"), width, {
    maxEpoch,
    title: `${part("metric").selectedOptions[0].textContent} (%)`,
    prediction: state.model ? state.prediction : null,
    level: facts.models?.band?.level,
    measured: state.measured || [],
  });
}

start();
