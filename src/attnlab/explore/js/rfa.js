// Random-feature attention: learning curves, heads, bias, and the table of complexities.
"use strict";

attnlab.rfa = ((theory, { logspace }, { text }) => {
  const MODELS = { rfa: ["RFA", "#0072B2", "o"], brfa: ["BRFA (bias)", "#D55E00", "s"], rfmlp: ["RFMLP", "#009E73", "^"], patch: ["pooled units", "#CC79A7", "D"] };
  const HEADS = [10, 20, 30, 50, 100, 150, 200, 300, 400, 600, 1000, 2000, 3000];
  let targets = [], sizes = { d: [16], N: [16] };

  function prepare(data) {
    targets = data.rfa.targets.map(({ name, label }) => [name, label]);
    sizes = { d: data.rfa.d, N: data.rfa.N };
  }

  const controls = [
    { key: "target", kind: "choice", label: "target, averaged over keys", initial: "f1_p2", values: () => targets },
    { key: "d", kind: "range", label: "dimension d", initial: 16, values: () => sizes.d },
    { key: "N", kind: "range", label: "keys N", initial: 16, values: () => sizes.N },
    { key: "heads", kind: "range", label: "heads M", initial: 1000, values: () => HEADS },
    { key: "scale", kind: "range", label: "bias scale c", initial: 0, values: () => [0, 0.5, 1, 2, 4, 8] },
    { key: "n", kind: "range", label: "samples n", initial: 512, values: () => [64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384] },
  ];

  function predict(data, { target, d, N }, model, n) {
    const modes = data.rfa.modes[target]?.[d][N];
    return modes ? theory.learningCurve(data.rfa.spectra[d][N][model], modes[model], modes.variance, n) : NaN;
  }

  const series = (rows, key, [label, color, marker], words) => ({ x: rows.map((r) => r[key]), y: rows.map((r) => r.mean),
    low: rows.map((r) => r.mean - r.sem), high: rows.map((r) => r.mean + r.sem), color, marker, label: `${label}${words}` });

  function curves(state, data) {
    const n = logspace(32, 32768, 46), lines = [], points = [];
    for (const model of ["rfa", "rfmlp"]) {
      if (state.target in data.rfa.modes) {
        lines.push({ x: n, y: n.map((v) => predict(data, state, model, v)), color: MODELS[model][1], width: 2.3, label: `${MODELS[model][0]}, theory (M = ∞)` });
      }
    }
    for (const [model, look] of Object.entries(MODELS)) {
      const rows = data.rfa.curves.filter((r) => r.target === state.target && r.d === state.d && r.N === state.N && r.model === model);
      for (const heads of [...new Set(rows.map((r) => r.heads))]) points.push(series(rows.filter((r) => r.heads === heads), "n", look, `, M = ${heads}`));
    }
    const peak = state.heads * (state.d + 1), rules = [{ y: 1, color: "#57606a", dash: "2 4" }];
    rules.push({ x: state.n, color: "#57606a", dash: "6 4", label: `n = ${state.n}` });
    if (peak >= 32 && peak <= 32768) rules.push({ x: peak, color: "#E69F00", dash: "8 4", label: `n = M(d + 1) = ${peak}` });
    return { title: "Learning curves", empty: "no stored run at this target, d and N", lines, points, rules, height: 340,
      x: { label: "samples n", domain: [32, 32768], log: true, ticks: [64, 256, 1024, 4096, 16384] },
      y: { label: "test error / Var f*", domain: [0.005, 3], log: true } };
  }

  function heads(state, data) {
    const limit = predict(data, state, "rfa", state.n), lines = [], points = [];
    if (Number.isFinite(limit)) lines.push({ x: [10, 4000], y: [limit, limit], color: "#0072B2", label: `RFA, M = ∞ (theory): ${text(limit, 3)}` });
    for (const [model, look] of Object.entries(MODELS)) {
      const rows = data.rfa.heads.filter((r) => r.target === state.target && r.model === model && r.d === state.d && r.N === state.N && r.n === state.n);
      if (rows.length) points.push(series(rows, "heads", look, `, n = ${state.n}`));
    }
    const peak = state.n / (state.d + 1), rules = [{ x: state.heads, color: "#E69F00", dash: "8 4", label: `M = ${state.heads}` }];
    if (peak > 10) rules.push({ x: peak, color: "#57606a", dash: "6 4", label: "M(d + 1) = n: error peaks" });
    return { title: "Error against heads", empty: "no stored run at this setting", lines, points, rules, x: { label: `heads M (n = ${state.n})`, domain: [10, 4000], log: true },
      y: { label: "test error / Var f*", domain: [0, Math.max(1.3, ...points.flatMap((p) => p.high)) * 1.05] } };
  }

  function bias(state, data) {
    const limit = predict(data, state, "rfa", state.n), lines = [], points = [];
    if (Number.isFinite(limit)) lines.push({ x: [0, 8], y: [limit, limit], color: "#0072B2", dash: "6 4", label: "no bias, M = ∞ (theory)" });
    const rows = data.rfa.scales.filter((r) => r.target === state.target && r.d === state.d && r.N === state.N && r.n === state.n);
    for (const heads of [...new Set(rows.map((r) => r.heads))]) points.push(series(rows.filter((r) => r.heads === heads), "scale", MODELS.brfa, `, M = ${heads}`));
    return { title: "Error against the bias W₀ = cI", empty: "no stored run at this setting", lines, points,
      rules: [{ x: state.scale, color: "#E69F00", dash: "8 4", label: `c = ${text(state.scale)}` }], x: { label: `bias scale c (n = ${state.n})`, domain: [-0.2, 8.2] },
      y: { label: "test error / Var f*", domain: [0, Math.max(1.2, ...points.flatMap((p) => p.high)) * 1.05] } };
  }

  // Complexity B of every target at this d and N; the sample size is of the order of B.
  function table(state, data) {
    const { make } = attnlab.page, body = document.querySelector("#rfa-complexity tbody");
    body.replaceChildren(...data.rfa.targets.filter(({ name }) => name in data.rfa.modes).map(({ name, label }) => {
      const { complexity: B } = data.rfa.modes[name][state.d][state.N];
      const cells = [B.rfa, B.rfmlp, B.rfmlp / B.rfa, B.approx, B.biased].map((v) => make("td", { class: "number" }, v === null ? "–" : text(v, 3)));
      const row = make("tr", name === state.target ? { "aria-current": "true" } : {}, make("th", { scope: "row" }, label), ...cells);
      return row;
    }));
  }

  function render(state, data) {
    const { target, d, N, n } = state, rfa = predict(data, state, "rfa", n), mlp = predict(data, state, "rfmlp", n), facts = [];
    table(state, data);
    if (Number.isFinite(rfa)) {
      facts.push(`At n = ${n} theory expects an error of ${text(rfa, 3)} for attention (RFA) and ${text(mlp, 3)} for a network on the concatenated tokens (RFMLP), in units of Var f*.`);
    } else facts.push("A softmax target is no polynomial of the query and one key: there is no closed prediction, only simulation.");
    if (state.scale) facts.push("With a bias (BRFA) the kernel has no closed spectrum: lines are for c = 0; the table has the cost of an approximation under a bias.");
    facts.push(`${state.heads} heads have ${state.heads * (d + 1)} trained numbers: near n = ${state.heads * (d + 1)} they interpolate, and the error peaks.`);
    const rows = [...data.rfa.curves, ...data.rfa.heads, ...data.rfa.scales];
    const figure = /^(f1|x0)/.test(target) ? "rfa.keys" : "rfa.correlations";
    const known = data.rfa.targets.find(({ name }) => name === target);
    const command = state.scale
      ? `attnlab run rfa.bias-scale --set d=${d} --set n_keys=${N} --set heads=${state.heads} --set scale=${state.scale.toFixed(1)} --set n=${n}`
      : `attnlab run ${figure} --set d=${d} --set n_keys=${N} --set heads=${state.heads} --set n_max=${n}`;
    return { facts, charts: [curves(state, data), heads(state, data), bias(state, data)], command,
      python: target in data.rfa.modes
        ? `from attnlab import rfa; print(rfa.theory.learning_curve(rfa.Task(${known.python}, d=${d}, n_keys=${N}), ${n}).error)`
        : `from attnlab import rfa; print(rfa.Task(${known.python}, d=${d}, n_keys=${N}).variance)`,
      nothing: rows.length ? "" : "attnlab reproduce rfa.keys rfa.correlations rfa.heads rfa.bias-scale", chips: offers(data, target) };
  }

  function offers(data, target) {
    const chips = new Map();
    for (const { d, N, ...row } of data.rfa.curves.filter((r) => r.target === target)) chips.set(`learning curve, d = ${d}, N = ${N}`, { d, N, heads: row.heads });
    for (const { d, N, n } of data.rfa.heads.filter((r) => r.target === target)) chips.set(`heads, n = ${n}`, { d, N, n });
    for (const { d, N, n } of data.rfa.scales.filter((r) => r.target === target)) chips.set(`bias scale, n = ${n}`, { d, N, n });
    return [...chips];
  }

  const setting = (s) => `${targets.find(([name]) => name === s.target)[1]}, d = ${s.d}, N = ${s.N}, M = ${s.heads}, c = ${text(s.scale)}`;
  return { controls, prepare, render, setting, predict };
})(attnlab.rfaTheory, attnlab.numbers, attnlab.axes);
