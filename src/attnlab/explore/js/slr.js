// Single-location regression: the (kappa, nu) plane with trajectories, risk along them, risk and stability against lambda.
"use strict";

attnlab.slr = ((theory, { linspace, logspace }, { text }) => {
  const COLORS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"];
  const LAMBDAS = [...new Set([...logspace(0.02, 2, 60), 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1, 2].map((v) => Number(v.toPrecision(2))))].sort((a, b) => a - b);
  const LIMIT = Math.sqrt(3) / 2;
  const DEFAULT = "-0.7,0.5;0.15,-0.55;0.1,0.2";

  const controls = [
    { key: "lam", kind: "range", label: "inverse temp. λ", initial: 0.05, values: () => LAMBDAS },
    { key: "d", kind: "range", label: "dimension d", initial: 400, values: () => [10, 20, 40, 80, 100, 200, 400, 800, 1600, 6400] },
    { key: "L", kind: "range", label: "tokens L", initial: 10, values: () => [2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50] },
    { key: "off", kind: "range", label: "off the manifold by", initial: 0, values: () => [0, 0.001, 0.01, 0.05, 0.1, 0.2, 0.3] },
    { key: "time", kind: "range", label: "train until", initial: 50, values: () => [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000] },
  ];

  const read = (words) => words.split(";").map((pair) => pair.split(",").map(Number))
    .filter((pair) => pair.length === 2 && pair.every((v) => Number.isFinite(v) && Math.abs(v) <= 1)).slice(-COLORS.length);
  const write = (starts) => starts.map((pair) => pair.map((v) => Number(v.toFixed(3))).join(",")).join(";");

  function adjust(state) {
    const starts = read(state.starts || DEFAULT);
    return { ...state, starts: write(starts.length ? starts : read(DEFAULT)) };
  }

  // Overlaps of a start: theta = eta = off, and the parts of k and v outside the plane at an angle with cosine off.
  function begin([kappa, nu], off) {
    const most = Math.sqrt(1 - off * off), k = Math.max(-most, Math.min(most, kappa)), v = Math.max(-most, Math.min(most, nu));
    const rest = Math.sqrt(Math.max(0, 1 - k * k - off * off) * Math.max(0, 1 - v * v - off * off));
    return [k, v, off, off, off ? off * (k + v) + off * rest : 0];
  }

  // About a hundred points of a trajectory, the first and the last included.
  function thinned({ times, states }) {
    const keep = Math.max(1, Math.floor(times.length / 150));
    const chosen = times.map((_, i) => i).filter((i) => i % keep === 0 || i === times.length - 1);
    return { times: chosen.map((i) => times[i]), states: chosen.map((i) => states[i]) };
  }

  function portrait(state, law, paths, data, set) {
    const grid = linspace(-1, 1, 49), values = grid.map((nu) => grid.map((kappa) => theory.risk([kappa, nu, 0, 0, 0], law)));
    const flat = values.flat(), ticks = linspace(-0.9, 0.9, 10), arrows = [], starts = read(state.starts);
    for (const kappa of ticks) {
      for (const nu of ticks) {
        const [dx, dy] = theory.velocity([kappa, nu, 0, 0, 0], law);
        arrows.push({ x: kappa, y: nu, dx, dy });
      }
    }
    const lines = paths.map(({ states }, i) => ({ x: states.map((s) => s[0]), y: states.map((s) => s[1]), color: COLORS[i], width: 2.4, name: `start ${i + 1}` }));
    const points = [
      { x: [1, -1], y: [1, -1], color: "#000000", marker: "s", size: 1.3, label: "minima ±(k*, v*)" },
      { x: [0], y: [0], color: "#000000", marker: "x", size: 1.3, label: "saddle" },
      { x: [1, -1], y: [-1, 1], color: "#000000", marker: "^", hollow: true, size: 1.2, label: "maxima" },
    ].map((p) => ({ ...p, kind: "theory" }));
    for (const run of data.slr.portrait.filter((p) => p.d === state.d && p.L === state.L && Math.abs(p.lam - state.lam) < 1e-9)) {
      points.push({ x: run.kappa, y: run.nu, color: "#57606a", size: 0.55, label: "gradient descent, stored" });
    }
    const last = starts[starts.length - 1], limit = (v) => Math.max(-1, Math.min(1, v));
    const moved = (pair) => set({ starts: write([...starts.slice(0, -1), pair.map(limit)]) });
    return { title: "Phase portrait: click to start", square: true, arrows, lines, points,
      heat: { values, domain: [Math.min(...flat), Math.max(...flat)], label: "risk, low to high" },
      x: { label: "κ = k · k*", domain: [-1.04, 1.04], ticks: [-1, -0.5, 0, 0.5, 1] },
      y: { label: "ν = v · v*", domain: [-1.04, 1.04], ticks: [-1, -0.5, 0, 0.5, 1] },
      click: (kappa, nu) => set({ starts: write([...starts, [kappa, nu].map(limit)]) }),
      handle: { x: last[0], y: last[1], color: COLORS[starts.length - 1], label: "Movable start: κ and ν. Arrow keys move it.",
        move: (kappa, nu) => moved([kappa, nu]), step: (right, up) => moved([last[0] + 0.05 * right, last[1] + 0.05 * up]) } };
  }

  function riskInTime(state, law, paths) {
    const first = 0.01, lines = paths.map(({ times, states }, i) => {
      const shown = times.map((t, k) => [t, theory.risk(states[k], law)]).filter(([t]) => t >= first);
      return { x: shown.map(([t]) => t), y: shown.map(([, r]) => r), color: COLORS[i], width: 2.2, name: `start ${i + 1}` };
    });
    const top = Math.max(theory.nullRisk(), ...lines.flatMap((l) => l.y));
    return { title: "Risk along the trajectories", lines,
      rules: [{ y: theory.oracleRisk(law), color: "#000000", dash: "6 4", label: "at (k*, v*)" },
        { y: theory.linearRisk(state.L), color: "#57606a", dash: "2 4", label: "best linear predictor" }],
      x: { label: "time (step × number of steps)", domain: [first, state.time], log: true },
      y: { label: "risk R − ε²", domain: [0, 1.08 * top] } };
  }

  function riskInLambda(state, data) {
    const x = logspace(LAMBDAS[0], 2, 80), y = x.map((lam) => theory.oracleRisk({ ...state, lam }));
    const points = data.slr.runs.filter((r) => r.d === state.d && r.L === state.L).map((r, i) => ({ x: [r.lam], y: [r.mean],
      low: [r.mean - r.sem], high: [r.mean + r.sem], color: COLORS[(i + 1) % 6], marker: "os^Dv"[i % 5], label: r.label }));
    points.push({ x: [state.lam], y: [theory.oracleRisk(state)], color: "#D55E00", size: 1.5, label: "this λ", kind: "theory" });
    return { title: "Risk against λ",
      lines: [{ x, y, color: "#0072B2", width: 2.4, label: "(k*, v*)" }], points,
      rules: [{ y: theory.linearRisk(state.L), color: "#57606a", dash: "2 4", label: "linear" },
        { y: theory.nullRisk(), color: "#57606a", dash: "8 4", label: "predict zero" }],
      x: { label: "inverse temperature λ", domain: [0.02, 2], log: true, ticks: [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2] },
      y: { label: "risk R − ε²", domain: [0.03, 10], log: true } };
  }

  function stability(state) {
    const x = linspace(0.4, 2, 81), y = x.map((lam) => theory.transverseExponent({ ...state, lam }));
    const most = Math.max(...y.map(Math.abs), 1e-6), here = theory.transverseExponent(state);
    const points = state.lam >= 0.4 ? [{ x: [state.lam], y: [here], color: "#D55E00", size: 1.5, label: "this λ", kind: "theory" }] : [];
    return { here, title: "Stability of the planted pair",
      lines: [{ x, y, color: "#0072B2", width: 2.4, label: "rate at which the flow leaves M" }], points,
      rules: [{ x: LIMIT, color: "#D55E00", dash: "6 4", label: "λ = √3/2" }, { y: 0, color: "#57606a", width: 1 }],
      x: { label: "inverse temperature λ", domain: [0.4, 2] }, y: { label: "rate (positive: unstable)", domain: [-1.1 * most, 1.1 * most] } };
  }

  function render(state, data, set) {
    const law = { d: state.d, L: state.L, lam: state.lam };
    const paths = read(state.starts).map((start) => thinned(theory.flow(begin(start, state.off), state.time, law, 2e-5)));
    const last = stability(state), ends = paths.map(({ states }) => states[states.length - 1]);
    const found = ends.filter(([k, v]) => Math.abs(v) > 0.9 && k * v > 0).length, far = Math.min(...ends.map(([k]) => Math.abs(k)));
    const facts = [`By time ${text(state.time)}, ${found} of ${ends.length} trajectories approach ±(k*, v*): |ν| > 0.9, κ of the same sign and at least ${text(far, 2)} in size.`
      + ` Risk at (k*, v*): ${text(theory.oracleRisk(law))}; best linear predictor: ${text(theory.linearRisk(state.L))}.`];
    facts.push(last.here > 0
      ? `At this λ the planted pair is unstable off the manifold (rate ${text(last.here, 3)}): start a little off it and train long to see it left.`
      : `At this λ the planted pair is stable (slowest rate ${text(last.here, 3)}). For large d it loses stability at λ = √3/2 ≈ 0.866.`);
    if (!state.off) facts.push("Started exactly on the manifold M (θ = η = ρ = 0), training never leaves it.");
    return { facts, charts: [portrait(state, law, paths, data, set), riskInTime(state, law, paths), riskInLambda(state, data), last],
      command: `attnlab run slr.portrait --set lam=${state.lam} --set d=${state.d} --set L=${state.L}`,
      python: `from attnlab import slr; print(slr.theory.oracle_risk(d=${state.d}, L=${state.L}, lam=${state.lam}), `
        + `slr.theory.transverse_exponent(d=${state.d}, L=${state.L}, lam=${state.lam}))`,
      nothing: data.slr.portrait.length + data.slr.runs.length ? "" : "attnlab reproduce slr.portrait slr.manifold slr.small slr.large slr.schedule",
      chips: data.slr.portrait.map(({ lam, d, L }) => [`portrait, λ = ${text(lam)}, d = ${d}, L = ${L}`, { lam, d, L, off: 0 }]) };
  }

  function build(section, set) {
    section.querySelector("#slr-clear").addEventListener("click", () => set({ starts: read(attnlab.page.states.slr.starts).slice(-1).map(String).join(";") }));
    section.querySelector("#slr-keep").addEventListener("click", () => {
      const starts = read(attnlab.page.states.slr.starts);
      set({ starts: write([...starts, starts[starts.length - 1].map((v) => v * 0.8)]) });
    });
  }

  const setting = (s) => `λ = ${text(s.lam)}, d = ${s.d}, L = ${s.L}, off the manifold by ${text(s.off)}`;
  return { controls, adjust, build, render, setting, begin };
})(attnlab.slrTheory, attnlab.numbers, attnlab.axes);
