// Random-feature attention: learning curves, heads, bias, and the table of complexities.
"use strict";

attnlab.views.rfa = ((theory, { logspace }, { text }, { unique, means }) => {
  const MODELS = {
    rfa: { name: "RFA", color: "#0072B2", marker: "o" },
    brfa: { name: "BRFA (bias)", color: "#D55E00", marker: "s" },
    rfmlp: { name: "RFMLP", color: "#009E73", marker: "^" },
    patch: { name: "pooled units", color: "#CC79A7", marker: "D" },
  };
  const SOFT = "#57606a", KNOB = "#E69F00";
  let targets = [], sizes = { d: [16], N: [16] };

  function prepare(data) {
    targets = data.rfa.targets.map(({ name, label }) => [name, label]);
    sizes = { d: data.rfa.d, N: data.rfa.N };
  }

  const controls = [
    { key: "target", kind: "choice", label: "target", initial: "f1_p2", values: () => targets },
    { key: "d", kind: "range", label: "dimension d", initial: 16, values: () => sizes.d },
    { key: "N", kind: "range", label: "keys N", initial: 16, values: () => sizes.N },
    { key: "heads", kind: "range", label: "heads M", initial: 1000, free: true,
      values: () => [10, 20, 30, 50, 100, 150, 200, 300, 400, 600, 1000, 2000, 3000] },
    { key: "scale", kind: "range", label: "bias scale c", initial: 0, values: () => [0, 0.5, 1, 2, 4, 8] },
    { key: "n", kind: "range", label: "samples n", initial: 512, free: true,
      values: () => [64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384] },
  ];

  // Predicted error with `units` heads (or units of RFMLP), by default infinitely many; not a number without theory.
  function predict(data, { target, d, N }, model, n, units = Infinity) {
    const modes = data.rfa.modes[target]?.[d][N];
    return modes ? theory.learningCurve(data.rfa.spectra[d][N][model], modes[model], modes.variance, n, units) : NaN;
  }

  // Stored rows of this target and size, one series for each model and number of heads.
  function stored(rows, state, key, words) {
    const mine = rows.filter((r) => r.target === state.target && r.d === state.d && r.N === state.N);
    return Object.entries(MODELS).flatMap(([model, { name, ...look }]) => {
      const found = mine.filter((r) => (r.model || "brfa") === model);
      const split = key === "heads" ? [null] : unique(found.map((r) => r.heads));
      return split.map((heads) => [heads, found.filter((r) => heads === null || r.heads === heads)])
        .filter(([, group]) => group.length)
        .map(([heads, group]) => means(group, key, { ...look, label: `${name}${words(heads)}` }));
    });
  }

  const errorAxis = (points, least) => ({ label: "test error / Var f*",
    domain: [0, 1.05 * Math.max(least, ...points.flatMap((p) => p.high))] });

  function curves(state, data) {
    const n = logspace(32, 32768, 46), peak = state.heads * (state.d + 1), { rfa, rfmlp } = MODELS;
    const line = (model, units, look) => ({ x: n, y: n.map((size) => predict(data, state, model, size, units)), ...look });
    const lines = Number.isFinite(predict(data, state, "rfa", state.n)) ? [
      line("rfa", state.heads, { color: rfa.color, width: 2.4, label: `RFA, M = ${state.heads} (theory)` }),
      line("rfa", Infinity, { color: rfa.color, width: 1.2, dash: "6 4", label: "RFA, M = ∞ (theory)" }),
      line("rfmlp", Infinity, { color: rfmlp.color, width: 1.6, label: "RFMLP, infinite width (theory)" }),
    ] : [];
    const rules = [{ y: 1, color: SOFT, dash: "2 4" }, { x: state.n, color: SOFT, dash: "6 4", label: `n = ${state.n}` }];
    if (peak <= 32768) rules.push({ x: peak, color: KNOB, dash: "8 4", label: `n = M(d + 1) = ${peak}` });
    return {
      title: "Learning curves", empty: "no stored run at this target, d and N", height: 340, lines, rules,
      points: stored(data.rfa.curves, state, "n", (heads) => `, M = ${heads}`),
      x: { label: "samples n", domain: [32, 32768], log: true, ticks: [64, 256, 1024, 4096, 16384] },
      y: { label: "test error / Var f*", domain: [0.005, 3], log: true },
    };
  }

  function heads(state, data) {
    const limit = predict(data, state, "rfa", state.n), peak = state.n / (state.d + 1), M = logspace(10, 4000, 60);
    const points = stored(data.rfa.heads.filter((r) => r.n === state.n), state, "heads", () => `, n = ${state.n}`);
    const rules = [{ x: state.heads, color: KNOB, dash: "8 4", label: `M = ${state.heads}` }];
    if (peak > 10) rules.push({ x: peak, color: SOFT, dash: "6 4", label: "M(d + 1) = n: error peaks" });
    return {
      title: "Error against heads", empty: "no stored run at this setting", points, rules,
      lines: Number.isFinite(limit) ? [
        { x: M, y: M.map((m) => predict(data, state, "rfa", state.n, m)), color: "#0072B2", width: 2.4, label: "RFA (theory)" },
        { x: [10, 4000], y: [limit, limit], color: "#0072B2", dash: "6 4", label: `M = ∞: ${text(limit, 3)}` },
      ] : [],
      x: { label: `heads M (n = ${state.n})`, domain: [10, 4000], log: true }, y: errorAxis(points, 2),
    };
  }

  function bias(state, data) {
    const limit = predict(data, state, "rfa", state.n);
    const points = stored(data.rfa.scales.filter((r) => r.n === state.n), state, "scale", (M) => `, M = ${M}`);
    return {
      title: "Error against the bias W₀ = cI", empty: "no stored run at this setting", points,
      lines: Number.isFinite(limit)
        ? [{ x: [0, 8], y: [limit, limit], color: "#0072B2", dash: "6 4", label: "no bias, M = ∞ (theory)" }] : [],
      rules: [{ x: state.scale, color: KNOB, dash: "8 4", label: `c = ${text(state.scale)}` }],
      x: { label: `bias scale c (n = ${state.n})`, domain: [-0.2, 8.2] }, y: errorAxis(points, 1.2),
    };
  }

  // Complexity B of every target at this d and N, the chosen one marked.
  function table(state, data) {
    const { make } = attnlab.page, known = data.rfa.targets.filter(({ name }) => name in data.rfa.modes);
    document.querySelector("#rfa-complexity tbody").replaceChildren(...known.map(({ name, label }) => {
      const { complexity: B } = data.rfa.modes[name][state.d][state.N];
      const cells = [B.rfa, B.rfmlp, B.rfmlp / B.rfa, B.approx, B.biased].map(
        (value) => make("td", { class: "number" }, value === null ? "–" : text(value, 3)),
      );
      return make("tr", name === state.target ? { "aria-current": "true" } : {}, make("th", { scope: "row" }, label), ...cells);
    }));
  }

  function describe(state, data) {
    const { d, n, heads: M, scale } = state, rfa = predict(data, state, "rfa", n), mlp = predict(data, state, "rfmlp", n);
    const facts = [Number.isFinite(rfa)
      ? `At n = ${n} theory predicts an error of ${text(predict(data, state, "rfa", n, M), 3)} for attention (RFA) with ${M} `
        + `heads, ${text(rfa, 3)} with infinitely many, and ${text(mlp, 3)} for a wide network on the concatenated tokens `
        + "(RFMLP), in units of Var f*."
      : "A softmax target is no polynomial of the query and one key: there is no closed prediction, only simulation."];
    if (scale) {
      facts.push("With a bias (BRFA) the kernel has no closed spectrum: lines are for c = 0; the table has the cost of an "
        + "approximation under a bias.");
    }
    facts.push(`${M} heads have ${M * (d + 1)} trained numbers: near n = ${M * (d + 1)} samples the error is farthest above `
      + "that of infinitely many heads.");
    return facts;
  }

  function command({ target, d, N, n, heads: M, scale }) {
    const size = `--set d=${d} --set n_keys=${N} --set heads=${M}`;
    if (scale) return `attnlab run rfa.bias-scale ${size} --set scale=${scale.toFixed(1)} --set n=${n}`;
    return `attnlab run ${/^(f1|x0)/.test(target) ? "rfa.keys" : "rfa.correlations"} ${size} --set n_max=${n}`;
  }

  function python({ target, d, N, n, heads: M }, data) {
    const task = `rfa.Task(${data.rfa.targets.find(({ name }) => name === target).python}, d=${d}, n_keys=${N})`;
    const value = target in data.rfa.modes ? `rfa.theory.learning_curve(${task}, ${n}, n_heads=${M})` : `${task}.variance`;
    return `from attnlab import rfa; print(${value})`;
  }

  // Where this target has stored runs.
  function chips({ target }, data) {
    const found = new Map(), mine = (rows) => rows.filter((r) => r.target === target);
    for (const { d, N, heads: M } of mine(data.rfa.curves)) found.set(`learning curve, d = ${d}, N = ${N}`, { d, N, heads: M });
    for (const { d, N, n } of mine(data.rfa.heads)) found.set(`heads, n = ${n}`, { d, N, n });
    for (const { d, N, n } of mine(data.rfa.scales)) found.set(`bias scale, n = ${n}`, { d, N, n });
    return [...found];
  }

  function render(state, data) {
    const rows = data.rfa.curves.length + data.rfa.heads.length + data.rfa.scales.length;
    table(state, data);
    return {
      facts: describe(state, data), charts: [curves(state, data), heads(state, data), bias(state, data)],
      command: command(state), python: python(state, data), chips: chips(state, data),
      nothing: rows ? "" : "attnlab reproduce rfa.keys rfa.correlations rfa.heads rfa.bias-scale",
    };
  }

  const setting = (s) => `${targets.find(([name]) => name === s.target)[1]}, d = ${s.d}, N = ${s.N}, M = ${s.heads}, `
    + `c = ${text(s.scale)}`;
  const presets = [
    ["quadratic key average", { target: "f1_p2", d: 16, N: 16, heads: 1000, scale: 0, n: 512 }],
    ["many keys", { target: "f1_p2", d: 16, N: 32, heads: 1000, scale: 0, n: 512 }],
    ["interpolation peak", { target: "f1_p2", d: 16, N: 16, heads: 30, scale: 0, n: 512 }],
    ["with a bias", { target: "f1_p2", d: 16, N: 16, heads: 1000, scale: 2, n: 512 }],
  ];
  return { controls, prepare, render, setting, predict, presets };
})(attnlab.rfaTheory, attnlab.numbers, attnlab.axes, attnlab.series);
