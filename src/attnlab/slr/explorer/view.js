// Single-location regression: the (kappa, nu) plane with trajectories, risk along them, risk and stability against lambda.
"use strict";

attnlab.views.slr = ((theory, { simulator, LARGEST }, { linspace, logspace }, { text }, { same, unique, means, here }) => {
  const COLORS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"];
  const ROUND = [0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1];
  const LAMBDAS = unique([...logspace(0.02, 2, 60), ...ROUND].map((v) => Number(v.toPrecision(2)))).sort((a, b) => a - b);
  const TIMES = [0.1, 1, 10, 100].flatMap((unit) => [1, 1.5, 2, 3, 5, 7].map((v) => Number((unit * v).toPrecision(2)))).concat(1000);
  const LIMIT = Math.sqrt(3) / 2, DEFAULT = "-0.7,0.5;0.15,-0.55;0.1,0.2", FIRST = 0.01, NEAR = 0.9;

  const controls = [
    { key: "lam", kind: "range", label: "inverse temp. λ", initial: 0.05, free: true, values: () => LAMBDAS },
    { key: "d", kind: "range", label: "dimension d", initial: 400,
      values: () => [10, 20, 40, 80, 100, 200, 400, 800, 1600, 6400] },
    { key: "L", kind: "range", label: "tokens L", initial: 10, values: () => [2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50] },
    { key: "off", kind: "range", label: "off the manifold by", initial: 0,
      values: () => [0, 0.001, 0.01, 0.05, 0.1, 0.2, 0.3] },
    { key: "time", kind: "range", label: "train until", initial: 50,
      values: () => TIMES },
  ];

  // Starts are kept in the address as kappa,nu;kappa,nu;... at most as many as there are colours.
  const read = (words) => words.split(";").map((pair) => pair.split(",").map(Number))
    .filter((pair) => pair.length === 2 && pair.every((v) => Math.abs(v) <= 1)).slice(-COLORS.length);
  const write = (starts) => starts.map((pair) => pair.map((v) => Number(v.toFixed(3))).join(",")).join(";");

  function adjust(state) {
    const starts = read(state.starts || DEFAULT);
    return { ...state, starts: write(starts.length ? starts : read(DEFAULT)) };
  }

  // Overlaps of a start: theta = eta = off, and the parts of k and v outside the plane at an angle with cosine off.
  function begin([kappa, nu], off) {
    const most = Math.sqrt(1 - off * off), [k, v] = [kappa, nu].map((x) => Math.max(-most, Math.min(most, x)));
    const rest = Math.sqrt(Math.max(0, 1 - k * k - off * off) * Math.max(0, 1 - v * v - off * off));
    return [k, v, off, off, off * (k + v + rest)];
  }

  // About 150 points of a trajectory, the first and the last included.
  function thinned({ times, states }) {
    const keep = Math.max(1, Math.floor(times.length / 150));
    const chosen = times.map((_, i) => i).filter((i) => i % keep === 0 || i === times.length - 1);
    return { times: chosen.map((i) => times[i]), states: chosen.map((i) => states[i]) };
  }

  // The simulation that is shown: its setting, and the times and overlaps passed so far.
  let live = { key: "", times: [], states: [] };
  const liveKey = ({ lam, d, L, off, starts }) => [lam, d, L, off, starts.split(";").pop()].join(" ");

  // What was simulated at this setting until the time shown.
  function simulated(state) {
    const shown = live.key === liveKey(state) ? live.times.filter((t) => t <= state.time).length : 0;
    return { times: live.times.slice(0, shown), states: live.states.slice(0, shown) };
  }

  function simulate(set) {
    const wanted = { ...attnlab.page.states.slr, d: Math.min(attnlab.page.states.slr.d, LARGEST) };
    set({ d: wanted.d });
    const { lam, d, L, off, time } = wanted, start = begin(read(wanted.starts).pop(), off);
    const run = simulator(start, { lam, d, L }, 1 + live.times.length);
    live = { key: liveKey(wanted), times: [0], states: [start] };
    const end = Math.min(time, 50);
    let next = 2 * FIRST;
    attnlab.page.animate(() => {
      run.advance();
      if (run.time() >= next) {
        live.times.push(run.time());
        live.states.push(run.overlaps());
        next = Math.max(1.12 * run.time(), next);
      }
      return run.time() < end && live.key === liveKey(attnlab.page.states.slr);
    });
  }

  // Training from its beginning to the time of the slider, about four seconds long.
  function play(set) {
    const end = attnlab.page.states.slr.time, frames = TIMES.filter((t) => t < end).concat(end);
    let due = 0;
    attnlab.page.animate(() => {
      if (performance.now() < due) return true;
      due = performance.now() + 160;
      set({ time: frames.shift() });
      return frames.length > 0;
    });
  }

  function field(law) {
    const ticks = linspace(-0.9, 0.9, 10);
    return ticks.flatMap((x) => ticks.map((y) => {
      const [dx, dy] = theory.velocity([x, y, 0, 0, 0], law);
      return { x, y, dx, dy };
    }));
  }

  // The live run as points of a chart.
  function sgd(state, x, y) {
    const { times, states } = simulated(state);
    return { x: states.map((s, i) => x(s, times[i])), y: states.map((s) => y(s)), color: "#000000", size: 0.8, hollow: true,
      kind: "simulation", label: times.length ? `SGD in d = ${state.d}, live` : "" };
  }

  function portrait(state, law, paths, data, set) {
    const rate = theory.transverseExponent(state);
    const grid = linspace(-1, 1, 49), values = grid.map((nu) => grid.map((kappa) => theory.risk([kappa, nu, 0, 0, 0], law)));
    const flat = values.flat(), starts = read(state.starts), last = starts[starts.length - 1];
    const limit = (v) => Math.max(-1, Math.min(1, v));
    const moved = (pair) => set({ starts: write([...starts.slice(0, -1), pair.map(limit)]) });
    const critical = [
      { x: [1, -1], y: [1, -1], marker: "s", size: 1.3, label: rate > 0 ? "±(k*, v*), unstable off M" : "minima ±(k*, v*)" },
      { x: [0], y: [0], marker: "x", size: 1.3, label: "saddle" },
      { x: [1, -1], y: [-1, 1], marker: "^", hollow: true, size: 1.2, label: "maxima" },
    ].map((point) => ({ color: "#000000", kind: "theory", ...point }));
    const stored = data.slr.portrait.filter((p) => p.d === state.d && p.L === state.L && same(p.lam, state.lam))
      .map((p) => ({ x: p.kappa, y: p.nu, color: "#57606a", size: 0.55, label: "gradient descent, stored" }));
    return {
      title: "Phase portrait", hint: "click to start", square: true, arrows: field(law),
      points: [...critical, ...stored, sgd(state, ([kappa]) => kappa, ([, nu]) => nu)],
      heat: { values, domain: [Math.min(...flat), Math.max(...flat)], label: "risk, low to high" },
      lines: paths.map(({ states }, i) => ({ x: states.map((s) => s[0]), y: states.map((s) => s[1]), color: COLORS[i],
        width: 2.4, name: `start ${i + 1}` })),
      x: { label: "κ = k · k*", domain: [-1.04, 1.04], ticks: [-1, -0.5, 0, 0.5, 1] },
      y: { label: "ν = v · v*", domain: [-1.04, 1.04], ticks: [-1, -0.5, 0, 0.5, 1] },
      click: (kappa, nu) => set({ starts: write([...starts, [kappa, nu].map(limit)]) }),
      handle: {
        x: last[0], y: last[1], color: COLORS[starts.length - 1], label: "Movable start: κ and ν. Arrow keys move it.",
        move: (kappa, nu) => moved([kappa, nu]),
        step: (right, up) => moved([last[0] + 0.05 * right, last[1] + 0.05 * up]),
      },
    };
  }

  function riskInTime(state, law, paths) {
    const lines = paths.map(({ times, states }, i) => {
      const shown = times.map((_, k) => k).filter((k) => times[k] >= FIRST);
      return { x: shown.map((k) => times[k]), y: shown.map((k) => theory.risk(states[k], law)), color: COLORS[i], width: 2.2,
        name: `start ${i + 1}` };
    });
    return {
      title: "Risk along the trajectories", lines,
      points: [sgd(state, (_, time) => Math.max(time, FIRST), (s) => theory.risk(s, law))],
      rules: [
        { y: theory.oracleRisk(law), color: "#000000", dash: "6 4", label: "at (k*, v*)" },
        { y: theory.linearRisk(state.L), color: "#57606a", dash: "2 4", label: "best linear predictor" },
      ],
      x: { label: "time (step × number of steps)", domain: [FIRST, Math.max(state.time, 10)], log: true },
      y: { label: "risk R − ε²", domain: [0, 1.08 * Math.max(theory.nullRisk(), ...lines.flatMap((l) => l.y))] },
    };
  }

  function riskInLambda(state, data) {
    const x = logspace(0.02, 2, 80), runs = data.slr.runs.filter((r) => r.d === state.d && r.L === state.L);
    return {
      title: "Risk against λ",
      lines: [{ x, y: x.map((lam) => theory.oracleRisk({ ...state, lam })), color: "#0072B2", width: 2.4, label: "(k*, v*)" }],
      points: [
        ...runs.map((run, i) => means([run], "lam", { color: COLORS[(i + 1) % 6], marker: "os^Dv"[i % 5], label: run.label })),
        here(state.lam, theory.oracleRisk(state), "this λ"),
      ],
      rules: [
        { y: theory.linearRisk(state.L), color: "#57606a", dash: "2 4", label: "linear" },
        { y: theory.nullRisk(), color: "#57606a", dash: "8 4", label: "predict zero" },
      ],
      x: { label: "inverse temperature λ", domain: [0.02, 2], log: true, ticks: [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2] },
      y: { label: "risk R − ε²", domain: [0.03, 10], log: true },
    };
  }

  function stability(state) {
    const x = linspace(0.4, 2, 81), y = x.map((lam) => theory.transverseExponent({ ...state, lam }));
    const most = 1.1 * Math.max(...y.map(Math.abs), 1e-6), rate = theory.transverseExponent(state);
    return {
      rate, title: "Stability of the planted pair",
      lines: [{ x, y, color: "#0072B2", width: 2.4, label: "rate at which the flow leaves M" }],
      points: state.lam >= 0.4 ? [here(state.lam, rate, "this λ")] : [],
      rules: [{ x: LIMIT, color: "#D55E00", dash: "6 4", label: "λ = √3/2" }, { y: 0, color: "#57606a", width: 1 }],
      x: { label: "inverse temperature λ", domain: [0.4, 2] },
      y: { label: "rate (positive: unstable)", domain: [-most, most] },
    };
  }

  function describe(state, law, ends, rate) {
    const found = ends.filter(([k, v]) => Math.abs(k) > NEAR && Math.abs(v) > NEAR && k * v > 0).length;
    const facts = [
      `At time ${text(state.time)}, ${found} of ${ends.length} trajectories are near ±(k*, v*): |κ| and |ν| above ${NEAR}, `
        + `with the same sign. Risk at (k*, v*): ${text(theory.oracleRisk(law))}; best linear `
        + `predictor: ${text(theory.linearRisk(state.L))}.`,
      rate > 0
        ? `At this λ the planted pair is unstable off the manifold (rate ${text(rate, 3)}): start a little off it and train `
          + "long to see it left."
        : `At this λ the planted pair is stable (slowest rate ${text(rate, 3)}). For large d it loses stability at `
          + "λ = √3/2 ≈ 0.866.",
    ];
    if (!state.off) facts.push("Started exactly on the manifold M (θ = η = ρ = 0), training never leaves it.");
    return facts;
  }

  function render(state, data, set) {
    const { d, L, lam } = state, law = { d, L, lam }, last = stability(state), arguments_ = `d=${d}, L=${L}, lam=${lam}`;
    const paths = read(state.starts).map((start) => thinned(theory.flow(begin(start, state.off), state.time, law, 2e-5)));
    const stored = data.slr.portrait.length + data.slr.runs.length;
    return {
      facts: describe(state, law, paths.map(({ states }) => states[states.length - 1]), last.rate),
      charts: [portrait(state, law, paths, data, set), riskInTime(state, law, paths), riskInLambda(state, data), last],
      command: `attnlab run slr.portrait --set lam=${lam} --set d=${d} --set L=${L}`,
      python: `from attnlab import slr; print(slr.theory.oracle_risk(${arguments_}), `
        + `slr.theory.transverse_exponent(${arguments_}))`,
      nothing: stored ? "" : "attnlab reproduce slr.portrait slr.manifold slr.small slr.large slr.schedule",
      chips: data.slr.portrait.map((p) => [`portrait, λ = ${text(p.lam)}, d = ${p.d}, L = ${p.L}`,
        { lam: p.lam, d: p.d, L: p.L, off: 0 }]),
    };
  }

  function build(section, set) {
    const starts = () => read(attnlab.page.states.slr.starts);
    section.querySelector("#slr-play").addEventListener("click", () => play(set));
    section.querySelector("#slr-live").addEventListener("click", () => simulate(set));
    section.querySelector("#slr-clear").addEventListener("click", () => set({ starts: write(starts().slice(-1)) }));
    section.querySelector("#slr-keep").addEventListener("click", () => {
      const all = starts();
      set({ starts: write([...all, all[all.length - 1].map((v) => 0.8 * v)]) });
    });
  }

  const setting = (s) => `λ = ${text(s.lam)}, d = ${s.d}, L = ${s.L}, off the manifold by ${text(s.off)}`;
  const presets = [
    ["every start succeeds", { lam: 0.05, d: 400, L: 10, off: 0, time: 50, starts: DEFAULT }],
    ["unstable above √3/2", { lam: 1, d: 400, L: 10, off: 0.1, time: 200, starts: DEFAULT }],
    ["stable below", { lam: 0.7, d: 400, L: 10, off: 0.1, time: 200, starts: DEFAULT }],
    ["small, to simulate live", { lam: 0.1, d: 40, L: 10, off: 0, time: 20, starts: "0.1,0.2" }],
  ];
  return { controls, adjust, build, render, setting, begin, presets };
})(attnlab.slrTheory, attnlab.slrLive, attnlab.numbers, attnlab.axes, attnlab.series);
