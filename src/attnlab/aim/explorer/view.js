// Attention-indexed models: error against samples, phase diagram, spectrum of the estimate.
"use strict";

attnlab.views.aim = ((theory, { simulator }, { interpolate, linspace, logspace }, { text }, { same, unique, closest, inRatio, means, here }) => {
  const WIDTHS = [
    0.05, 0.06, 0.08, 0.1, 0.12, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9,
    1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 4, 5,
  ];
  const EXTENT = [WIDTHS[0], WIDTHS[WIDTHS.length - 1]];
  const LEARNERS = {
    amp: { name: "AMP", color: "#000000", marker: "o" },
    single: { name: "one gradient descent", color: "#E69F00", marker: "^" },
    averaged: { name: "averaged gradient descent", color: "#CC79A7", marker: "D" },
  };
  const heats = {};

  const prepare = (data) => theory.load(data.aim.hardmax);

  // The alphas offered: to 1.2 times 1/(T^2 + T - 2) for softmax, almost three decades for hardmax.
  function alphas({ channel, tokens }) {
    if (channel === "hardmax") return linspace(-1.7, 1, 55).map((power) => Number((10 ** power).toPrecision(2)));
    const top = 1.2 / (2 * theory.measurements(tokens));
    return linspace(top / 120, top, 120).map((alpha) => Number(alpha.toPrecision(6)));
  }

  const controls = [
    { key: "channel", kind: "choice", label: "output", initial: "softmax",
      values: () => [["softmax", "softmax attention"], ["hardmax", "hardmax attention"]] },
    { key: "tokens", kind: "range", label: "tokens T", initial: 2,
      values: ({ channel }) => (channel === "hardmax" ? [2, 3, 4] : [2, 3, 4, 5, 6]) },
    { key: "rho", kind: "range", label: "width ρ = r/d", initial: 0.5, free: true, values: () => WIDTHS },
    { key: "alpha", kind: "range", label: "samples α = n/d²", initial: 0.15, free: true, values: alphas },
  ];

  // Another T keeps α(T² + T − 2), which is what matters for softmax.
  function follow(before, after) {
    if (after.channel !== "softmax" || before.channel !== "softmax" || before.tokens === after.tokens) return after;
    return { ...after, alpha: before.alpha * theory.measurements(before.tokens) / theory.measurements(after.tokens) };
  }

  // Message passing that runs in the page: errors of the finished runs and of the one that is under way.
  const SIZE = 40, ITERATIONS = 30, RUNS = 6;
  let live = { key: "", done: [], now: NaN };
  const liveKey = ({ channel, tokens, rho, alpha }) => [channel, tokens, rho, alpha].join(" ");

  function simulate(set) {
    set({ channel: "softmax" });
    const { tokens, rho, alpha } = attnlab.page.states.aim, mine = { key: liveKey(attnlab.page.states.aim), done: [], now: NaN };
    let run = null;
    live = mine;
    attnlab.page.animate(() => {
      run ||= simulator({ d: SIZE, tokens, rho, alpha }, mine.done.length);
      run.advance();
      mine.now = run.error();
      if (run.iteration() === ITERATIONS) {
        mine.done.push(mine.now);
        mine.now = NaN;
        run = null;
      }
      return mine.done.length < RUNS && mine.key === liveKey(attnlab.page.states.aim);
    });
  }

  // The live runs at this setting: finished ones filled, the present one hollow, and their mean with its standard error.
  function liveSeries(state) {
    if (live.key !== liveKey(state)) return [];
    const { done, now } = live, mean = done.reduce((sum, e) => sum + e, 0) / done.length;
    const spread = Math.sqrt(done.reduce((sum, e) => sum + (e - mean) ** 2, 0) / Math.max(1, done.length - 1) / done.length);
    const look = { color: "#009E73", kind: "simulation" }, x = (values) => values.map(() => state.alpha);
    const moving = Number.isFinite(now) ? [now] : [];
    return [
      { ...look, x: x(moving), y: moving, hollow: true, size: 1.3, label: moving.length ? `AMP, d = ${SIZE}, run ${done.length + 1}` : "" },
      ...(done.length ? [{ ...look, x: [state.alpha], y: [mean], low: [mean - spread], high: [mean + spread], marker: "D", size: 1.2,
        label: `AMP live, mean of ${done.length} run${done.length > 1 ? "s" : ""}` }] : []),
    ];
  }

  const build = (section, set) => section.querySelector("#aim-live").addEventListener("click", () => simulate(set));

  // The horizontal axis that two charts share.
  function samplesAxis(state) {
    const values = alphas(state), log = state.channel === "hardmax";
    return { label: "samples α = n/d²", domain: log ? [0.02, 10] : [0, values[values.length - 1]], log };
  }

  function errorChart(state, data) {
    const { channel, tokens, rho, alpha } = state, hard = channel === "hardmax", x = samplesAxis(state);
    const curve = theory.curve(rho, tokens, channel, 70), error = theory.mmse(alpha, rho, tokens, channel);
    if (!hard) { curve.alpha.push(x.domain[1]); curve.error.push(0); }
    const stored = data.aim.points.filter((p) => p.channel === channel && p.tokens === tokens && same(p.rho, rho));
    const points = Object.entries(LEARNERS).flatMap(([learner, { name, ...look }]) => {
      const rows = stored.filter((p) => p.learner === learner), sizes = unique(rows.map((p) => p.d)).join(", ");
      return rows.length ? [means(rows, "alpha", { ...look, label: `${name}, d = ${sizes}` })] : [];
    });
    return {
      error, title: "Error against samples", empty: "no stored run at this T and ρ", x,
      lines: [{ x: curve.alpha, y: curve.error, color: "#0072B2", width: 2.4, label: "Bayes error (theory)" }],
      rules: hard ? [] : [{ x: theory.threshold(rho, tokens), color: "#D55E00", dash: "6 4", label: "recovery threshold" }],
      points: [...points, here(alpha, error), ...liveSeries(state)],
      y: { label: "error ‖S − Ŝ‖²/d", domain: hard ? [1e-3, 1.3] : [0, 1.04], log: hard },
    };
  }

  // The Bayes error over (alpha, rho); for softmax in the variable alpha (T^2 + T - 2), once for all T.
  function heat({ channel, tokens }) {
    const hard = channel === "hardmax", key = hard ? `hardmax ${tokens}` : channel;
    if (!heats[key]) {
      const columns = hard ? logspace(0.02, 10, 60) : linspace(0, 1.2, 60);
      const unit = hard ? 1 : 2 * theory.measurements(2);
      const values = logspace(...EXTENT, 36).map((rho) => {
        const curve = theory.curve(rho, hard ? tokens : 2, channel, 36), x = curve.alpha.map((a) => a * unit);
        return columns.map((column) => interpolate(column, x, curve.error));
      });
      heats[key] = { values, domain: [0, 1], label: "Bayes error, 0 to 1" };
    }
    return heats[key];
  }

  function phaseChart(state, data, set) {
    const { channel, tokens, rho, alpha } = state, hard = channel === "hardmax";
    const x = samplesAxis(state), values = alphas(state), widths = logspace(...EXTENT, 80);
    const threshold = { x: widths.map((r) => theory.threshold(r, tokens)), y: widths, color: "#D55E00", width: 2.4,
      label: "recovery threshold" };
    const runs = data.aim.points.filter((p) => p.channel === channel && p.tokens === tokens && p.learner === "amp"
      && p.alpha <= x.domain[1]);
    const group = (rows, hollow, label) => ({ x: rows.map((p) => p.alpha), y: rows.map((p) => p.rho), color: "#000000",
      hollow, label: rows.length ? label : "" });
    const shift = (list, value, way) => {
      const at = list.findIndex((v) => same(v, value)) + way;
      return list[Math.min(list.length - 1, Math.max(0, at))];
    };
    return {
      title: "Phase diagram", hint: "drag the ring", heat: heat(state), height: 330, x,
      lines: hard ? [] : [threshold],
      points: hard ? [group(runs, true, "AMP runs stored")] : [
        group(runs.filter((p) => p.mean < 0.02), false, "AMP recovers (error < 0.02)"),
        group(runs.filter((p) => p.mean >= 0.02), true, "AMP does not"),
      ],
      y: { label: "width ρ = r/d", domain: EXTENT, log: true, ticks: [0.05, 0.1, 0.2, 0.5, 1, 2, 5] },
      handle: {
        x: alpha, y: rho, label: "Movable point: samples α and width ρ. Arrow keys move it.",
        move: (a, r) => set({ alpha: a, rho: closest(WIDTHS, r, inRatio) }),
        step: (right, up) => set({ alpha: shift(values, alpha, right), rho: shift(WIDTHS, rho, up) }),
      },
    };
  }

  // A law as the share of eigenvalues in each bin over its width, so that mass at a point has a finite height.
  function stairs({ x, cdf }, bins) {
    const mass = bins.map((edge) => (edge <= x[0] ? 0 : interpolate(edge, x, cdf))), steps = { x: [], y: [] };
    for (let i = 0; i + 1 < bins.length; i++) {
      const height = Math.max((mass[i + 1] - mass[i]) / (bins[i + 1] - bins[i]), 1e-9);
      steps.x.push(bins[i], bins[i + 1]);
      steps.y.push(height, height);
    }
    return steps;
  }

  // Simulated eigenvalues in the same bins; the bar is the square root of the count.
  function histogram({ d, eigenvalues }, bins) {
    const wide = bins[1] - bins[0], counts = Array(bins.length - 1).fill(0), unit = 1 / (eigenvalues.length * wide);
    for (const value of eigenvalues) {
      const bin = Math.floor((value - bins[0]) / wide);
      if (bin >= 0 && bin < counts.length) counts[bin]++;
    }
    const kept = counts.map((count, i) => [bins[i] + wide / 2, count]).filter(([, count]) => count);
    return {
      color: "#000000", label: `AMP, d = ${d}`, x: kept.map(([x]) => x), y: kept.map(([, c]) => c * unit),
      low: kept.map(([, c]) => Math.max(c - Math.sqrt(c), 0.01) * unit), high: kept.map(([, c]) => (c + Math.sqrt(c)) * unit),
    };
  }

  function spectrumChart(state, data) {
    const { channel, tokens, rho, alpha } = state, noise = theory.effectiveNoise(alpha, rho, tokens, channel);
    const truth = theory.law(0, rho), top = truth.x[truth.x.length - 1] * 1.06 + 0.1, bins = linspace(-0.08 * top, top, 56);
    const stored = data.aim.spectra.filter((s) => channel === "softmax" && s.tokens === tokens && same(s.rho, rho)
      && same(s.alpha, alpha));
    return {
      title: "Spectrum of the estimate", empty: "no stored run at this T, ρ and α",
      lines: [
        { ...stairs(truth, bins), color: "#57606a", dash: "5 4", width: 1.6, label: "S, planted" },
        { ...stairs(theory.law(noise, rho), bins), color: "#0072B2", width: 2.2, label: "estimate Ŝ (theory)" },
      ],
      points: stored.map((run) => histogram(run, bins)),
      x: { label: "eigenvalue", domain: [bins[0], top] }, y: { label: "density", domain: [0.01, 30], log: true },
    };
  }

  function describe({ channel, tokens, rho, alpha }, error) {
    const said = `Bayes error at this setting: ${text(error)}.`, end = theory.threshold(rho, tokens, channel);
    if (channel === "hardmax") {
      const rule = "Hardmax shows only which logit is largest: the error falls as α⁻² and never vanishes.";
      const caution = "For three and four tokens the channel is integrated by quasi-Monte Carlo, to a few per cent.";
      return [said, tokens > 2 ? `${rule} ${caution}` : rule];
    }
    const k = theory.measurements(tokens);
    return [said, `Perfect recovery from α = ${text(end)} on: a sequence fixes ${k} numbers, and S has ${text(k * end)} d² `
      + `to be fixed. This setting has ${text(100 * alpha / end, 3)} % of what is needed.`];
  }

  function render(state, data, set) {
    const { channel, tokens, rho, alpha } = state, first = errorChart(state, data);
    return {
      facts: describe(state, first.error),
      charts: [first, phaseChart(state, data, set), spectrumChart(state, data)],
      command: `attnlab run aim.${channel} --set rho=${rho} --set tokens=${tokens} --set alpha=${alpha}`,
      python: `from attnlab import aim; print(aim.theory.mmse(${alpha}, rho=${rho}, tokens=${tokens}, channel="${channel}"))`,
      nothing: data.aim.points.length ? "" : "attnlab reproduce aim.softmax aim.hardmax aim.phase_diagram aim.spectra",
      chips: chips(data),
    };
  }

  // One button for each setting with stored runs; those with a spectrum lead to it.
  function chips(data) {
    const found = new Map(), runs = [...data.aim.spectra.map((s) => ({ ...s, channel: "softmax" })), ...data.aim.points];
    for (const { channel, tokens, rho, alpha } of runs) {
      const words = `${channel}, T = ${tokens}, ρ = ${text(rho)}`;
      if (!found.has(words)) found.set(words, { channel, tokens, rho, alpha });
    }
    return [...found].sort(([, a], [, b]) => b.channel.localeCompare(a.channel) || a.tokens - b.tokens || a.rho - b.rho);
  }

  const setting = (s) => `${s.channel}, T = ${s.tokens}, ρ = ${text(s.rho)}, α = ${text(s.alpha)}`;
  const presets = [
    ["just below recovery", { channel: "softmax", tokens: 2, rho: 0.5, alpha: 0.18 }],
    ["just above", { channel: "softmax", tokens: 2, rho: 0.5, alpha: 0.19 }],
    ["few parameters (ρ = 0.1)", { channel: "softmax", tokens: 2, rho: 0.1, alpha: 0.04 }],
    ["four tokens", { channel: "softmax", tokens: 4, rho: 0.5, alpha: 0.03 }],
    ["hardmax", { channel: "hardmax", tokens: 2, rho: 0.5, alpha: 1 }],
  ];
  return { controls, prepare, follow, build, render, setting, presets };
})(attnlab.aimTheory, attnlab.aimLive, attnlab.numbers, attnlab.axes, attnlab.series);
