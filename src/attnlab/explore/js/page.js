// The page around the views: tabs, controls, the state in the address, commands to copy, exports.
"use strict";

attnlab.page = (({ text }, { closest }, plot, exports) => {
  const PARAMETER = /^([a-z]+)(?:\?(.*))?$/;
  const views = {}, states = {}, drawn = {};
  let current = "", data = null, pending = false, timer = 0, running = 0;

  const make = (name, attributes = {}, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };

  // A value from the address or a slider, made one of those allowed.
  function allowed(control, state, value) {
    const values = control.values(state);
    if (control.kind === "choice") return values.some(([name]) => String(name) === String(value)) ? value : values[0][0];
    const number = Number.isFinite(Number(value)) ? Number(value) : control.initial;
    // A free control keeps a value of the address that lies between two stops of its slider.
    const inside = number >= values[0] && number <= values[values.length - 1];
    return control.free && inside ? number : closest(values, number);
  }

  function complete(view, wanted) {
    const state = { ...wanted };
    for (const control of view.controls) {
      state[control.key] = allowed(control, state, wanted[control.key] ?? control.initial);
      if (control.kind === "choice" && typeof control.initial === "number") state[control.key] = Number(state[control.key]);
    }
    return view.adjust ? view.adjust(state) : state;
  }

  function set(name, changes) {
    const view = views[name], before = states[name];
    states[name] = complete(view, view.follow ? view.follow(before, { ...before, ...changes }) : { ...before, ...changes });
    schedule();
  }

  function schedule() {
    if (pending) return;
    pending = true;
    requestAnimationFrame(() => { pending = false; render(); });
  }

  // Calls `work` as often as a frame has time for and draws, until it answers false or something else is animated.
  function animate(work) {
    const mine = ++running;
    const frame = () => {
      if (mine !== running) return;
      const end = performance.now() + 25;
      let more = true;
      while (more && performance.now() < end) more = work();
      schedule();
      if (more) setTimeout(frame, 30);
    };
    frame();
  }

  function address(name) {
    const query = Object.entries(states[name]).map(([key, value]) => `${key}=${encodeURIComponent(value)}`);
    return `#${name}?${query.join("&")}`;
  }

  function restore() {
    const [, name, query] = PARAMETER.exec(location.hash.slice(1)) || [];
    current = name in views ? name : Object.keys(views)[0];
    if (name in views) states[name] = complete(views[name], Object.fromEntries(new URLSearchParams(query || "")));
    render();
  }

  function build(name) {
    const view = views[name], section = document.getElementById(`panel-${name}`), panel = section.querySelector(".controls");
    for (const control of view.controls) {
      const id = `${name}-${control.key}`;
      if (control.kind === "choice") {
        const select = make("select", { id });
        select.addEventListener("change", () => set(name, { [control.key]: select.value }));
        panel.append(make("div", { class: "control" }, make("label", { for: id }, control.label), select));
      } else {
        const input = make("input", { id, type: "range", min: 0, step: 1 });
        input.addEventListener("input", () => set(name, { [control.key]: control.values(states[name])[input.value] }));
        const label = make("label", { for: id }, control.label);
        panel.append(make("div", { class: "control" }, label, make("output", { for: id }), input));
      }
    }
    section.querySelectorAll(".chart").forEach((figure, index) => {
      const buttons = make("span", { class: "exports" });
      const kinds = {
        PNG: async () => exports.png(holder(figure), drawn[name][index], view.setting(states[name])),
        CSV: async () => new Blob([exports.csv(drawn[name][index])], { type: "text/csv" }),
      };
      for (const [kind, content] of Object.entries(kinds)) {
        const button = make("button", { type: "button", class: "small" }, kind);
        const file = `attnlab-${figure.dataset.name}.${kind.toLowerCase()}`;
        button.addEventListener("click", async () => exports.save(file, await content()));
        buttons.append(button);
      }
      figure.querySelector("h3").after(buttons);
    });
    section.querySelectorAll(".copy").forEach((button) => button.addEventListener("click", () => copy(button)));
    offer(section.querySelector(".presets"), name, "Try: ", view.presets || []);
    view.build?.(section, (changes) => set(name, changes), data);
  }

  const holder = (figure) => figure.querySelector(".drawing");

  async function copy(button) {
    const code = button.parentElement.querySelector("code");
    try {
      await navigator.clipboard.writeText(code.textContent);
    } catch {
      const range = document.createRange(), selection = getSelection();
      range.selectNodeContents(code);
      selection.removeAllRanges();
      selection.addRange(range);
      document.execCommand("copy");
    }
    button.textContent = "copied";
    setTimeout(() => { button.textContent = "copy"; }, 1200);
  }

  function showControls(name) {
    const view = views[name], state = states[name];
    for (const control of view.controls) {
      const input = document.getElementById(`${name}-${control.key}`), values = control.values(state);
      if (control.kind === "choice") {
        input.replaceChildren(...values.map(([value, words]) => make("option", { value }, words)));
        input.value = String(state[control.key]);
        continue;
      }
      const words = text(state[control.key]);
      input.max = values.length - 1;
      input.value = values.indexOf(closest(values, state[control.key]));
      input.setAttribute("aria-valuetext", words);
      input.parentElement.querySelector("output").textContent = words;
    }
  }

  // A row of buttons, each of which leads to a setting.
  function offer(place, name, heading, offers) {
    place.replaceChildren();
    if (!offers.length) return;
    place.append(heading);
    for (const [words, changes] of offers) {
      const chip = make("button", { type: "button", class: "small" }, words);
      chip.addEventListener("click", () => set(name, changes));
      place.append(chip);
    }
  }

  // A chart of stored runs alone, of which there are none.
  const nothing = (chart) => Boolean(chart.empty) && !chart.points.length && !(chart.lines || []).length;

  function render() {
    const view = views[current], section = document.getElementById(`panel-${current}`);
    for (const name of Object.keys(views)) {
      document.getElementById(`panel-${name}`).hidden = name !== current;
      const tab = document.getElementById(`tab-${name}`);
      tab.setAttribute("aria-selected", name === current);
      tab.tabIndex = name === current ? 0 : -1;
    }
    showControls(current);
    const result = view.render(states[current], data, (changes) => set(current, changes));
    drawn[current] = result.charts;
    section.querySelectorAll(".chart").forEach((figure, i) => {
      const { title, hint } = result.charts[i], words = hint ? [title, make("span", { class: "hint" }, hint)] : [title];
      figure.querySelector("h3").replaceChildren(...words);
      figure.hidden = nothing(result.charts[i]);
      if (!figure.hidden) plot.draw(holder(figure), result.charts[i]);
    });
    section.querySelector(".facts").replaceChildren(...result.facts.map((words) => make("p", {}, words)));
    section.querySelector(".command code").textContent = result.command;
    section.querySelector(".python code").textContent = result.python;
    section.querySelector(".nothing").hidden = !result.nothing;
    if (result.nothing) section.querySelector(".nothing code").textContent = result.nothing;
    offer(section.querySelector(".chips"), current, "Stored simulations: ", result.chips || []);
    clearTimeout(timer);
    timer = setTimeout(() => history.replaceState(null, "", address(current)), 120);
  }

  function tabs() {
    const names = Object.keys(views);
    const open = (name) => { current = name; render(); };
    for (const name of names) {
      const tab = document.getElementById(`tab-${name}`);
      tab.addEventListener("click", () => open(name));
      tab.addEventListener("keydown", (event) => {
        const way = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!way) return;
        event.preventDefault();
        const next = names[(names.indexOf(name) + way + names.length) % names.length];
        open(next);
        document.getElementById(`tab-${next}`).focus();
      });
    }
  }

  function start(found) {
    data = JSON.parse(document.getElementById("data").textContent);
    Object.assign(views, found);
    for (const name of Object.keys(views)) {
      views[name].prepare?.(data);
      states[name] = complete(views[name], {});
      build(name);
    }
    tabs();
    addEventListener("hashchange", restore);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", schedule);
    let wide = innerWidth;
    addEventListener("resize", () => { if (innerWidth !== wide) { wide = innerWidth; schedule(); } });
    restore();
  }

  return { start, states, make, animate };
})(attnlab.axes, attnlab.series, attnlab.plot, attnlab.exports);
