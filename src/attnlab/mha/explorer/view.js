// Recovering a multi-head layer: what its heads attend to before and after, and who succeeds with how many examples.
"use strict";

attnlab.views.mha = ((patterns, { text }, { unique, closest, inRatio, shares }) => {
  const LOOKS = {
    race: { color: "#0072B2", marker: "o" },
    sculpting: { color: "#009E73", marker: "D" },
    projected_lbfgs: { color: "#CC79A7", marker: "^" },
    lbfgs: { color: "#D55E00", marker: "s" },
    adam: { color: "#E69F00", marker: "v" },
  };
  const SHARE = { label: "share recovered (95 % interval)", domain: [-0.03, 1.03], ticks: [0, 0.25, 0.5, 0.75, 1] };
  let layers = [], sizes = {};

  function prepare(data) { ({ layers, ...sizes } = data.mha.fitted); }

  const chosen = ({ m, rho }) => layers.find((layer) => layer.m === m && layer.rho === rho);
  const counts = (state) => chosen(state).fits.map(({ n }) => n);
  const controls = [
    { key: "m", kind: "range", label: "heads m", initial: 2, values: () => unique(layers.map((l) => l.m)) },
    { key: "rho", kind: "range", label: "head strength ρ = ‖Θ‖", initial: 4, values: () => unique(layers.map((l) => l.rho)) },
    { key: "n", kind: "range", label: "examples n", initial: 16, values: counts },
  ];

  // Fewest examples with as many equations as unknowns (output width d).
  function needed(m, d, k) {
    return Math.max(Math.ceil(2 * m * d * d / (k * d)), Math.ceil(m * d * d / (k * Math.min(d, m * (k - 1)))));
  }

  // Side by side within a unit of the horizontal axis: the i-th of `many`.
  const aside = (i, many, step) => step * (i - (many - 1) / 2);

  function weights(state) {
    const layer = chosen(state), fit = layer.fits.find(({ n }) => n === state.n);
    const rows = [["planted", layer.planted], ["before: a random start", layer.start],
      [`after: fitted to n = ${state.n}`, fit.found]];
    return { fit, title: "What each head attends to", paint: (holder) => patterns.draw(holder, rows), table: patterns.table(rows) };
  }

  function map(state, set) {
    const shown = layers.filter((layer) => layer.rho === state.rho), heads = shown.map((layer) => layer.m);
    const group = (recovered, label) => {
      const found = shown.flatMap((layer) => layer.fits.filter((f) => f.recovered === recovered).map((f) => [layer.m, f.n]));
      return { x: found.map(([m]) => m), y: found.map(([, n]) => n), color: "#000000", hollow: !recovered, label };
    };
    const values = counts(state), shift = (way) => values[Math.max(0, Math.min(values.length - 1, values.indexOf(state.n) + way))];
    return {
      title: "Recovery map", hint: "drag the ring", points: [group(true, "recovered"), group(false, "not recovered")],
      lines: [{ x: heads, y: heads.map((m) => needed(m, sizes.d, sizes.k)), color: "#D55E00", dash: "6 4", label: "counting limit" }],
      x: { label: "heads m", domain: [0.6, Math.max(...heads) + 0.4], ticks: heads },
      y: { label: "examples n", domain: [2, 60], log: true },
      handle: {
        x: state.m, y: state.n, label: "Movable point: heads m and examples n. Arrow keys move it.",
        move: (m, n) => set({ m: Math.round(m), n: closest(values, n, inRatio) }),
        step: (right, up) => set({ m: state.m + right, n: shift(up) }),
      },
    };
  }

  function byExamples(data) {
    const rows = data.mha.samples, learners = unique(rows.map((r) => r.learner)), [first] = rows;
    const points = learners.map((learner, i) => {
      const mine = rows.filter((r) => r.learner === learner), factor = 1 + aside(i, learners.length, 0.03);
      return shares(mine, (r) => r.n * factor, { ...LOOKS[learner], label: mine[0].label });
    });
    return {
      title: "Success against examples", empty: "no stored run", points, y: SHARE,
      rules: first ? [{ x: needed(first.m, first.d, first.k), color: "#D55E00", dash: "6 4", label: "counting limit" }] : [],
      x: { label: `examples n${first ? ` (m = ${first.m}, d = ${first.d}, k = ${first.k})` : ""}`, domain: [6, 100], log: true,
        ticks: [8, 12, 16, 24, 40, 80] },
    };
  }

  function byHeads(state, data) {
    const rows = data.mha.sizes.filter((r) => r.rho === state.rho), tokens = unique(rows.map((r) => r.k));
    const looks = Object.values(LOOKS), most = Math.max(3, ...rows.map((r) => r.m)), n = unique(rows.map((r) => r.n)).join(" or ");
    return {
      title: "Success against heads", empty: "no stored run", y: SHARE,
      points: tokens.map((k, i) => shares(rows.filter((r) => r.k === k), (r) => r.m + aside(i, tokens.length, 0.1),
        { ...looks[i % looks.length], label: `race, k = ${k}` })),
      x: { label: `heads m (ρ = ${text(state.rho)}${n ? `, n = ${n}` : ""})`, domain: [0.6, most + 0.4],
        ticks: Array.from({ length: most }, (_, i) => i + 1) },
    };
  }

  function byFamily(data) {
    const rows = data.mha.families, families = unique(rows.map((r) => r.family)), budgets = unique(rows.map((r) => r.label));
    const learner = (label) => rows.find((r) => r.label === label).learner;
    const points = budgets.map((label, i) => {
      // a learner's second budget has hollow markers
      const hollow = budgets.slice(0, i).some((other) => learner(other) === learner(label));
      const place = (r) => families.indexOf(r.family) + aside(i, budgets.length, 0.1);
      return shares(rows.filter((r) => r.label === label), place, { ...LOOKS[learner(label)], hollow, label });
    });
    return {
      title: "Success by family and learner", empty: "no stored run", points, height: 300, y: SHARE,
      x: { label: "family", domain: [-0.5, Math.max(families.length, 1) - 0.5], ticks: families.map((_, i) => i),
        format: (i) => families[i].replace("_", " ") },
    };
  }

  function describe({ m, n }, { recovered, error }) {
    const { d, k } = sizes;
    return [
      recovered
        ? `From ${n} examples the race of random starts recovers every head: the worst relative error of an attention matrix `
          + `is ${text(error, 2)}.`
        : `${n} examples do not settle the layer: the fitted heads attend elsewhere (relative error of the worst attention `
          + `matrix ${text(error, 2)}).`,
      `${m} head${m > 1 ? "s" : ""} of width d = ${d} hold ${2 * m * d * d} numbers; with k = ${k} tokens counting asks for at `
        + `least n = ${needed(m, d, k)}.`,
    ];
  }

  function render(state, data, set) {
    const first = weights(state), { d, k } = sizes, { m, rho, n } = state;
    const stored = data.mha.samples.length + data.mha.families.length + data.mha.sizes.length;
    return {
      facts: describe(state, first.fit),
      charts: [first, map(state, set), byExamples(data), byHeads(state, data), byFamily(data)],
      command: `attnlab run mha.samples --set n_heads=${m} --set d=${d} --set k=${k} --set rho=${rho.toFixed(1)} --set n=${n}`,
      python: `from attnlab import mha; print(mha.theory.examples_needed(n_heads=${m}, d=${d}, k=${k}))`,
      nothing: stored ? "" : "attnlab reproduce mha.samples mha.recovery mha.sizes",
    };
  }

  const setting = ({ m, rho, n }) => `m = ${m}, d = ${sizes.d}, k = ${sizes.k}, ρ = ${text(rho)}, n = ${n}`;
  const presets = [
    ["too few examples", { m: 2, rho: 4, n: 1 }],
    ["recovered", { m: 2, rho: 4, n: 1e6 }],
    ["nearly uniform attention", { m: 2, rho: 0, n: 1e6 }],
    ["hard attention", { m: 2, rho: 1e6, n: 1e6 }],
  ];
  return { controls, prepare, render, setting, needed, presets };
})(attnlab.patterns, attnlab.axes, attnlab.series);
