// Filters as menus and numbers, for keyboards and screen readers: the same ones that are brushed.

import { escapeText } from "./draw.js";

const TINY = 1e-6;

export class FilterForm {
  // `change` is called with an axis and the shares of it, from 0 to 1, that were chosen.
  constructor(element, change) {
    this.element = element;
    element.addEventListener("change", ({ target }) => {
      const axis = this.axes.find(({ id }) => id === target.dataset.id);
      const fault = this.faultOf(axis, target.value);
      change(axis, [0, 1].map((side) => this.read(axis, side)));
      this.say(axis, fault);
    });
  }

  make(axes) {
    this.axes = axes;
    const field = (axis, side) => {
      const words = `${escapeText(axis.title)}, ${side ? "to" : "from"}`;
      const names = `aria-label="${words}" data-id="${axis.id}" data-side="${side}"`;
      if (!axis.isChoice) return `<input type="number" step="any" ${names}>`;
      const options = axis.marks.map(([share, text]) => `<option value="${share}">${escapeText(text)}</option>`);
      return `<select ${names}>${options.join("")}</select>`;
    };
    const row = (axis) =>
      `<div><span>${escapeText(axis.title)}</span>${field(axis, 0)}<span>to</span>${field(axis, 1)}
        <small role="alert" hidden></small></div>`;
    this.element.innerHTML = axes.map(row).join("");
  }

  input(axis, side) {
    return this.element.querySelector(`[data-id="${axis.id}"][data-side="${side}"]`);
  }

  read(axis, side) {
    const { value } = this.input(axis, side);
    if (axis.isChoice) return Number(value);
    const share = value === "" ? side : axis.position(Number(value));
    return Number.isNaN(share) ? 0 : share; // a negative number has no logarithm
  }

  number(axis, share) {
    return Number(axis.back(share).toPrecision(4));
  }

  // Return what is wrong with a number that was typed; the nearest end is used in its place.
  faultOf(axis, value) {
    if (axis.isChoice || value === "") return "";
    const [low, high] = [0, 1].map((share) => this.number(axis, share));
    const used = Math.min(Math.max(Number(value), low), high);
    return used === Number(value) ? "" : `${axis.title}: ${value} is outside ${low} to ${high}, so ${used} is used.`;
  }

  say(axis, fault) {
    const note = this.input(axis, 0).parentElement.querySelector("small");
    note.textContent = fault;
    note.hidden = !fault;
  }

  show(filters) {
    for (const axis of this.axes) {
      this.say(axis, "");
      const [low, high] = filters.get(axis.id) || [0, 1];
      if (axis.isChoice) {
        const inside = axis.marks.map(([share]) => share).filter((s) => s >= low - TINY && s <= high + TINY);
        this.input(axis, 0).value = inside[0] ?? low;
        this.input(axis, 1).value = inside[inside.length - 1] ?? high;
      } else {
        [low, high].forEach((share, side) => {
          const number = this.number(axis, share);
          this.input(axis, side).value = filters.has(axis.id) ? number : "";
          this.input(axis, side).placeholder = number;
        });
      }
    }
  }
}
