// Attention-indexed models: error against samples, spectrum of the estimate, phase diagram.
"use strict";

attnlab.aim = ((theory, { interpolate, linspace, logspace }, { text }) => {
  const WIDTHS = [0.05, 0.06, 0.08, 0.1, 0.12, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.2, 1.4, 1.6,
    1.8, 2, 2.5, 3, 4, 5];
  const LEARNERS = { amp: ["AMP", "#000000", "o"], single: ["one gradient descent", "#E69F00", "^"], averaged: ["averaged gradient descent", "#CC79A7", "D"] };
  const heats = {};

  // The alphas offered: to 1.2 times 1/(T^2 + T - 2) for softmax, three decades for hardmax.
  function alphas({ channel, tokens }) {
    if (channel === "hardmax") return Array.from({ length: 55 }, (_, i) => Number((10 ** ((i - 34) / 20)).toPrecision(2)));
    const top = 1.2 / (2 * theory.measurements(tokens));
    return Array.from({ length: 120 }, (_, i) => Number((top * (i + 1) / 120).toPrecision(6)));
  }

  const controls = [
    { key: "channel", kind: "choice", label: "output", initial: "softmax",
      values: () => [["softmax", "softmax attention"], ["hardmax", "hardmax attention"]] },
    { key: "tokens", kind: "range", label: "tokens T", initial: 2, values: ({ channel }) => (channel === "hardmax" ? [2, 3, 4] : [2, 3, 4, 5, 6]) },
    { key: "rho", kind: "range", label: "width ρ = r/d", initial: 0.5, values: () => WIDTHS },
    { key: "alpha", kind: "range", label: "samples α = n/d²", initial: 0.15, values: alphas },
  ];

  // Another T keeps α(T² + T − 2), which is what matters for softmax.
  function follow(before, after) {
    if (after.channel === "softmax" && before.channel === "softmax" && before.tokens !== after.tokens) {
      return { ...after, alpha: before.alpha * theory.measurements(before.tokens) / theory.measurements(after.tokens) };
    }
    return after;
  }

  const same = (a, b) => Math.abs(a - b) < 1e-9;

  function stored(points, { channel, tokens, rho }) {
    return points.filter((p) => p.channel === channel && p.tokens === tokens && same(p.rho, rho));
  }

  function errorChart(state, data) {
    const { channel, tokens, rho, alpha } = state, hard = channel === "hardmax";
    const curve = theory.curve(rho, tokens, channel, 70, 120), values = alphas(state);
    const end = values[values.length - 1], lines = [{ x: curve.alpha, y: curve.error, color: "#0072B2", label: "Bayes error (theory)", width: 2.4 }];
    if (!hard) { curve.alpha.push(end); curve.error.push(0); }
    const rules = hard ? [] : [{ x: theory.threshold(rho, tokens), color: "#D55E00", dash: "6 4", label: "recovery threshold" }];
    const points = [];
    for (const [learner, [label, color, marker]] of Object.entries(LEARNERS)) {
      const found = stored(data.aim.points, state).filter((p) => p.learner === learner);
      if (!found.length) continue;
      points.push({ x: found.map((p) => p.alpha), y: found.map((p) => p.mean), low: found.map((p) => p.mean - p.sem),
        high: found.map((p) => p.mean + p.sem), color, marker, label: `${label}, d = ${[...new Set(found.map((p) => p.d))].join(", ")}` });
    }
    const error = theory.mmse(alpha, rho, tokens, channel);
    points.push({ x: [alpha], y: [error], color: "#D55E00", marker: "o", size: 1.5, label: "this setting", kind: "theory" });
    return { error, title: "Error against samples", empty: "no stored run at this T and ρ", lines, rules, points,
      x: { label: "samples α = n/d²", domain: hard ? [0.02, 10] : [0, end], log: hard },
      y: { label: "error ‖S − Ŝ‖²/d", domain: hard ? [1e-3, 1.3] : [0, 1.04], log: hard } };
  }

  // Both laws as shares of eigenvalues in bins, so that the mass at zero has a finite height.
  function spectrumChart(state, data) {
    const { channel, tokens, rho, alpha } = state, noise = theory.effectiveNoise(alpha, rho, tokens, channel);
    const truth = theory.law(0, rho), estimate = noise > 1e6 ? { x: [Math.sqrt(rho)], cdf: [1] } : theory.law(noise, rho);
    const top = truth.x[truth.x.length - 1] * 1.06 + 0.1, bins = linspace(-0.08 * top, top, 56), wide = bins[1] - bins[0];
    const steps = ({ x, cdf }) => {
      const at = bins.map((b) => (b <= x[0] ? 0 : interpolate(b, x, cdf))), xs = [], ys = [];
      for (let i = 0; i + 1 < bins.length; i++) { xs.push(bins[i], bins[i + 1]); ys.push(...Array(2).fill(Math.max((at[i + 1] - at[i]) / wide, 1e-9))); }
      return { x: xs, y: ys };
    };
    const lines = [{ ...steps(truth), color: "#57606a", dash: "5 4", width: 1.6, label: "S, planted" },
      { ...steps(estimate), color: "#0072B2", width: 2.2, label: "estimate Ŝ (theory)" }], points = [];
    const found = data.aim.spectra.filter((s) => channel === "softmax" && s.tokens === tokens && same(s.rho, rho) && same(s.alpha, alpha));
    for (const { d, eigenvalues } of found) {
      const counts = Array(bins.length - 1).fill(0);
      for (const v of eigenvalues) { const i = Math.floor((v - bins[0]) / wide); if (i >= 0 && i < counts.length) counts[i]++; }
      const unit = 1 / (eigenvalues.length * wide), kept = counts.map((c, i) => [bins[i] + wide / 2, c]).filter(([, c]) => c);
      points.push({ x: kept.map(([x]) => x), y: kept.map(([, c]) => c * unit), low: kept.map(([, c]) => Math.max(c - Math.sqrt(c), 0.01) * unit),
        high: kept.map(([, c]) => (c + Math.sqrt(c)) * unit), color: "#000000", label: `AMP, d = ${d}` });
    }
    return { title: "Spectrum of the estimate", lines, points, empty: "no stored run at this T, ρ and α",
      x: { label: "eigenvalue", domain: [bins[0], top] }, y: { label: "density", domain: [0.01, 30], log: true } };
  }

  function heat({ channel, tokens }) {
    const key = channel === "softmax" ? "softmax" : `hardmax ${tokens}`, hard = channel === "hardmax";
    if (!heats[key]) {
      const columns = hard ? logspace(0.02, 10, 60) : linspace(0, 1.2, 60);
      const values = logspace(WIDTHS[0], WIDTHS[WIDTHS.length - 1], 36).map((rho) => {
        const curve = theory.curve(rho, hard ? tokens : 2, channel, 36, 60), unit = hard ? 1 : 2 * theory.measurements(2);
        const x = curve.alpha.map((a) => a * unit);
        return columns.map((column) => interpolate(column, x, curve.error));
      });
      heats[key] = { values, domain: [0, 1], label: "Bayes error, 0 to 1" };
    }
    return heats[key];
  }

  function phaseChart(state, data, set) {
    const { channel, tokens, rho, alpha } = state, hard = channel === "hardmax", values = alphas(state);
    const end = values[values.length - 1], widths = logspace(WIDTHS[0], WIDTHS[WIDTHS.length - 1], 80);
    const lines = hard ? [] : [{ x: widths.map((r) => theory.threshold(r, tokens)), y: widths, color: "#D55E00", width: 2.4, label: "recovery threshold" }];
    const seen = data.aim.points.filter((p) => p.channel === channel && p.tokens === tokens && p.learner === "amp" && p.alpha <= end);
    const group = (recovered, label) => {
      const here = seen.filter((p) => p.mean < 0.02 === recovered);
      return { x: here.map((p) => p.alpha), y: here.map((p) => p.rho), color: "#000000", hollow: !recovered, label: here.length ? label : "" };
    };
    const shift = (list, value, way) => list[Math.min(list.length - 1, Math.max(0, list.findIndex((v) => same(v, value)) + way))];
    return { title: "Phase diagram: drag the ring", heat: heat(state), lines, height: 330,
      points: hard ? [group(false, "AMP runs stored")] : [group(true, "AMP recovers (error < 0.02)"), group(false, "AMP does not")],
      x: { label: "samples α = n/d²", domain: hard ? [0.02, 10] : [0, end], log: hard },
      y: { label: "width ρ = r/d", domain: [WIDTHS[0], WIDTHS[WIDTHS.length - 1]], log: true, ticks: [0.05, 0.1, 0.2, 0.5, 1, 2, 5] },
      handle: { x: alpha, y: rho, label: "Movable point: samples α and width ρ. Arrow keys move it.",
        move: (a, r) => set({ alpha: a, rho: WIDTHS.reduce((b, w) => (Math.abs(Math.log(w / r)) < Math.abs(Math.log(b / r)) ? w : b)) }),
        step: (right, up) => set({ alpha: shift(values, alpha, right), rho: shift(WIDTHS, rho, up) }) } };
  }

  function render(state, data, set) {
    const { channel, tokens, rho, alpha } = state, first = errorChart(state, data), end = theory.threshold(rho, tokens, channel);
    const facts = [`Bayes error at this setting: ${text(first.error)}.`];
    if (channel === "softmax") {
      const share = alpha / end;
      facts.push(`Perfect recovery from α = ${text(end)} on: a sequence fixes ${theory.measurements(tokens)} numbers, and S has `
        + `${text((rho < 1 ? 2 * rho - rho * rho : 1) / 2)} d² to be fixed. This setting has ${text(100 * share, 3)} % of what is needed.`);
    } else {
      facts.push("Hardmax shows only which logit is largest: the error falls as α⁻² and never vanishes."
        + (tokens > 2 ? " For three and four tokens the channel is integrated by quasi-Monte Carlo, to a few per cent." : ""));
    }
    const knobs = `--set rho=${rho} --set tokens=${tokens} --set alpha=${alpha}`;
    return { facts, charts: [first, phaseChart(state, data, set), spectrumChart(state, data)],
      command: `attnlab run aim.${channel === "softmax" ? "softmax" : "hardmax"} ${knobs}`,
      python: `from attnlab import aim; print(aim.theory.mmse(${alpha}, rho=${rho}, tokens=${tokens}, channel="${channel}"))`,
      nothing: data.aim.points.length ? "" : "attnlab reproduce aim.softmax aim.hardmax aim.phase_diagram aim.spectra",
      chips: offers(data) };
  }

  function offers(data) {
    const chips = new Map();
    for (const { channel, tokens, rho, alpha } of [...data.aim.spectra.map((s) => ({ ...s, channel: "softmax" })), ...data.aim.points]) {
      const words = `${channel}, T = ${tokens}, ρ = ${text(rho)}`;
      if (!chips.has(words)) chips.set(words, { channel, tokens, rho, alpha });
    }
    return [...chips].sort(([, a], [, b]) => b.channel.localeCompare(a.channel) || a.tokens - b.tokens || a.rho - b.rho);
  }

  const setting = ({ channel, tokens, rho, alpha }) => `${channel}, T = ${tokens}, ρ = ${text(rho)}, α = ${text(alpha)}`;
  return { controls, follow, render, setting };
})(attnlab.aimTheory, attnlab.numbers, attnlab.axes);
