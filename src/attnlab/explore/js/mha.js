// Recovering a multi-head layer: what its heads attend to before and after, and who succeeds with how many examples.
"use strict";

attnlab.mha = ((plot, { text }) => {
  const LEARNERS = { race: ["#0072B2", "o"], sculpting: ["#009E73", "D"], projected_lbfgs: ["#CC79A7", "^"], lbfgs: ["#D55E00", "s"], adam: ["#E69F00", "v"] };
  let layers = [], sizes = {};

  function prepare(data) { ({ layers, ...sizes } = data.layers); }

  const of = ({ m, rho }) => layers.find((layer) => layer.m === m && layer.rho === rho);
  const counts = (state) => of(state).fits.map((fit) => fit.n);
  const controls = [
    { key: "m", kind: "range", label: "heads m", initial: 2, values: () => [...new Set(layers.map((l) => l.m))] },
    { key: "rho", kind: "range", label: "head strength ρ = ‖Θ‖", initial: 4, values: () => [...new Set(layers.map((l) => l.rho))] },
    { key: "n", kind: "range", label: "examples n", initial: 16, values: counts },
  ];

  // Fewest examples with as many equations as unknowns (output width d).
  function needed(m, d, k) {
    return Math.max(Math.ceil(2 * m * d * d / (k * d)), Math.ceil(m * d * d / (k * Math.min(d, m * (k - 1)))));
  }

  // Rows: planted, at the random start, recovered; one column for each head; dark is a large weight.
  function patterns(state) {
    const layer = of(state), fit = layer.fits.find(({ n }) => n === state.n), k = sizes.k;
    const rows = [["planted", layer.planted], ["before: a random start", layer.start], [`after: fitted to n = ${state.n}`, fit.found]];
    const paint = (holder) => {
      const total = Math.max(280, holder.clientWidth), gap = 22, cell = Math.min(168, (total - gap * (state.m - 1) - 30) / state.m);
      const wide = 28 + state.m * (cell + gap) - gap, tall = rows.length * (cell + 34) + 46;
      const svg = plot.node("svg", { width: Math.min(total, wide), height: tall, viewBox: `0 0 ${Math.min(total, wide)} ${tall}`, role: "img",
        "font-family": plot.FONT, "aria-label": "Attention weights of every head: planted, at the start, recovered" });
      rows.forEach(([name, heads], r) => {
        const top = r * (cell + 34) + 24;
        plot.node("text", { x: 26, y: top - 8, fill: plot.INK, "font-size": 13, "font-weight": 600 }, svg, name);
        heads.forEach((weights, h) => {
          const left = 26 + h * (cell + gap), side = cell / k;
          if (r === rows.length - 1) plot.node("text", { x: left + cell / 2, y: top + cell + 17, "text-anchor": "middle", fill: plot.INK, "font-size": 13 }, svg, `head ${h + 1}`);
          weights.forEach((line, a) => line.forEach((weight, b) => {
            const square = plot.node("rect", { x: left + b * side, y: top + a * side, width: side + 0.3, height: side + 0.3, fill: plot.blue(weight) }, svg);
            plot.node("title", {}, square, `token ${a + 1} to token ${b + 1}: ${text(weight, 3)}`);
          }));
          plot.node("rect", { x: left, y: top, width: cell, height: cell, fill: "none", stroke: "#57606a" }, svg);
        });
        plot.node("text", { x: 0, y: 0, transform: `translate(14,${top + cell / 2}) rotate(-90)`, "text-anchor": "middle", fill: plot.INK, "font-size": 12 }, svg, "query token");
      });
      plot.node("text", { x: 26, y: tall - 8, fill: plot.INK, "font-size": 12 }, svg, "key token; white is weight 0, dark blue 1");
      holder.replaceChildren(svg);
    };
    const table = [["layer", "head", "query", "key", "weight"]];
    for (const [name, heads] of rows) heads.forEach((w, h) => w.forEach((line, a) => line.forEach((v, b) => table.push([`"${name}"`, h + 1, a + 1, b + 1, v]))));
    return { fit, title: "What each head attends to", paint, table, x: { label: "key token" }, y: { label: "query token" } };
  }

  function map(state, set) {
    const here = layers.filter((l) => l.rho === state.rho), heads = here.map((l) => l.m), every = (recovered) => {
      const found = here.flatMap((l) => l.fits.filter((f) => f.recovered === recovered).map((f) => [l.m, f.n]));
      return { x: found.map(([m]) => m), y: found.map(([, n]) => n), color: "#000000", hollow: !recovered, label: recovered ? "recovered" : "not recovered" };
    };
    const limit = heads.map((m) => needed(m, sizes.d, sizes.k)), values = counts(state), last = values.length - 1;
    const pick = (list, value) => list.reduce((b, v) => (Math.abs(Math.log(v / value)) < Math.abs(Math.log(b / value)) ? v : b));
    return { title: "Recovery map: drag the ring", points: [every(true), every(false)],
      lines: [{ x: heads, y: limit, color: "#D55E00", dash: "6 4", label: "counting limit" }],
      x: { label: "heads m", domain: [0.6, Math.max(...heads) + 0.4], ticks: heads }, y: { label: "examples n", domain: [2, 60], log: true },
      handle: { x: state.m, y: state.n, label: "Movable point: heads m and examples n. Arrow keys move it.",
        move: (m, n) => set({ m: Math.round(m), n: pick(values, n) }),
        step: (right, up) => set({ m: state.m + right, n: values[Math.max(0, Math.min(last, values.indexOf(state.n) + up))] }) } };
  }

  function byExamples(data) {
    const rows = data.mha.samples, setting = rows[0], names = [...new Set(rows.map((r) => r.learner))];
    const points = names.map((learner, i) => {
      const here = rows.filter((r) => r.learner === learner), [color, marker] = LEARNERS[learner];
      return { x: here.map((r) => r.n * (1 + 0.03 * (i - (names.length - 1) / 2))), y: here.map((r) => r.share), low: here.map((r) => r.low), high: here.map((r) => r.high), color, marker, label: here[0].label };
    });
    const rules = setting ? [{ x: needed(setting.m, setting.d, setting.k), color: "#D55E00", dash: "6 4", label: "counting limit" }] : [];
    const words = setting ? ` (m = ${setting.m}, d = ${setting.d}, k = ${setting.k})` : "";
    return { title: "Success against examples", empty: "no stored run", points, rules, x: { label: `examples n${words}`, domain: [6, 100], log: true, ticks: [8, 12, 16, 24, 40, 80] },
      y: { label: "share recovered (95 % interval)", domain: [-0.03, 1.03], ticks: [0, 0.25, 0.5, 0.75, 1] } };
  }

  function byHeads(state, data) {
    const rows = data.mha.sizes.filter((r) => r.rho === state.rho), tokens = [...new Set(rows.map((r) => r.k))], looks = Object.values(LEARNERS);
    const points = tokens.map((k, i) => {
      const here = rows.filter((r) => r.k === k), [color, marker] = looks[i % looks.length];
      return { x: here.map((r) => r.m + 0.1 * (i - (tokens.length - 1) / 2)), y: here.map((r) => r.share), low: here.map((r) => r.low), high: here.map((r) => r.high), color, marker, label: `race, k = ${k}` };
    });
    const most = Math.max(3, ...rows.map((r) => r.m)), n = [...new Set(rows.map((r) => r.n))].join(" or ");
    return { title: "Success against heads", empty: "no stored run", points,
      x: { label: `heads m (ρ = ${text(state.rho)}${n ? `, n = ${n}` : ""})`, domain: [0.6, most + 0.4], ticks: Array.from({ length: most }, (_, i) => i + 1) },
      y: { label: "share recovered (95 % interval)", domain: [-0.03, 1.03], ticks: [0, 0.25, 0.5, 0.75, 1] } };
  }

  function byFamily(data) {
    const rows = data.mha.families, families = [...new Set(rows.map((r) => r.family))], budgets = [...new Set(rows.map((r) => r.label))];
    const points = budgets.map((label, i) => {
      const here = rows.filter((r) => r.label === label), [color, marker] = LEARNERS[here[0].learner];
      return { x: here.map((r) => families.indexOf(r.family) + 0.1 * (i - (budgets.length - 1) / 2)), y: here.map((r) => r.share), low: here.map((r) => r.low), high: here.map((r) => r.high),
        color, marker, hollow: budgets.slice(0, i).some((b) => rows.find((r) => r.label === b).learner === here[0].learner), label };
    });
    return { title: "Success by family and learner", empty: "no stored run", points, height: 300,
      x: { label: "family", domain: [-0.5, Math.max(families.length, 1) - 0.5], ticks: families.map((_, i) => i), format: (i) => families[i].replace("_", " ") },
      y: { label: "share recovered (95 % interval)", domain: [-0.03, 1.03], ticks: [0, 0.25, 0.5, 0.75, 1] } };
  }

  function render(state, data, set) {
    const first = patterns(state), { d, k } = sizes, limit = needed(state.m, d, k), { fit } = first;
    const facts = [fit.recovered
      ? `From ${state.n} examples the race of random starts recovers every head: the worst relative error of an attention matrix is ${text(fit.error, 2)}.`
      : `${state.n} examples do not settle the layer: the fitted heads attend elsewhere (relative error of the worst attention matrix ${text(fit.error, 2)}).`];
    facts.push(`${state.m} head${state.m > 1 ? "s" : ""} of width d = ${d} hold ${2 * state.m * d * d} numbers; with k = ${k} tokens counting asks for at least n = ${limit}.`);
    const stored = data.mha.samples.length + data.mha.families.length + data.mha.sizes.length;
    return { facts, charts: [first, map(state, set), byExamples(data), byHeads(state, data), byFamily(data)],
      command: `attnlab run mha.samples --set n_heads=${state.m} --set d=${d} --set k=${k} --set rho=${state.rho.toFixed(1)} --set n=${state.n}`,
      python: `from attnlab import mha; print(mha.theory.examples_needed(n_heads=${state.m}, d=${d}, k=${k}))`,
      nothing: stored ? "" : "attnlab reproduce mha.samples mha.recovery mha.sizes" };
  }

  const setting = ({ m, rho, n }) => `m = ${m}, d = ${sizes.d}, k = ${sizes.k}, ρ = ${text(rho)}, n = ${n}`;
  return { controls, prepare, render, setting, needed };
})(attnlab.plot, attnlab.axes);
