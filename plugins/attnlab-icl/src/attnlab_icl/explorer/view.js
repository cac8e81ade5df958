// In-context regression: errors against contexts, tasks and context length.
"use strict";

attnlab.views.icl = ((theory, { logspace }, { text }, { unique, same, means, here }) => {
  const NEW = "#0072B2", OLD = "#D55E00", GRAY = "#57606a";
  const decades = (low, high, count) => unique(logspace(low, high, count).map((v) => Number(v.toPrecision(2))));
  const ALPHAS = decades(0.2, 1000, 60), KAPPAS = decades(0.05, 50, 50), TAUS = decades(0.1, 50, 60);
  const RIDGES = [0, 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.03, 0.1, 0.3, 1];

  const controls = [
    { key: "alpha", kind: "range", label: "context length α = l/d", initial: 10, free: true, values: () => ALPHAS },
    { key: "kappa", kind: "range", label: "tasks κ = k/d", initial: 0.5, free: true, values: () => KAPPAS },
    { key: "tau", kind: "range", label: "contexts τ = n/d²", initial: 2, free: true, values: () => TAUS },
    { key: "rho", kind: "range", label: "label noise ρ", initial: 0.01, free: true,
      values: () => [0, 0.001, 0.01, 0.03, 0.1, 0.25, 0.5, 1] },
    { key: "ridge", kind: "range", label: "ridge", initial: 1e-5, values: () => RIDGES },
  ];
  const at = (s, changes = {}) => {
    const { alpha, kappa, tau, rho, ridge } = { ...s, ...changes };
    return theory.errors(alpha, kappa, tau, rho, ridge);
  };

  // Both errors along one ratio, with the stored layers of the same setting.
  function sweep(state, data, { key, title, label, values, rules = [] }) {
    const x = logspace(values[0], values[values.length - 1], 160), found = x.map((v) => at(state, { [key]: v }));
    const others = ["alpha", "kappa", "tau", "rho", "ridge"].filter((name) => name !== key);
    const rows = data.icl.layers.filter((row) => others.every((name) => same(row[name], state[name])));
    const stored = (name, color, words) => (rows.length
      ? [means(rows.map((row) => ({ ...row, mean: row[name], sem: row[`${name}_sem`] })), key, { color, label: words })] : []);
    const now = at(state), most = Math.max(2, 3 * Math.max(now.icl, now.idg));
    return {
      title,
      lines: [
        { x, y: found.map((e) => e.icl), color: NEW, width: 2.4, label: "new task (ICL)" },
        { x, y: found.map((e) => e.idg), color: OLD, width: 2.4, label: "pretraining task (IDG)" },
      ],
      points: [...stored("icl", NEW, "layers, ICL"), ...stored("idg", OLD, "layers, IDG"),
        here(state[key], now.icl, "this setting")],
      rules: [{ y: 1 + state.rho, color: GRAY, dash: "8 4", label: "predict 0" }, ...rules],
      x: { label, domain: [values[0], values[values.length - 1]], log: true },
      y: { label: "test error", domain: [Math.max(1e-3, 0.5 * Math.min(now.icl, now.idg, state.rho || 1)), most], log: true },
    };
  }

  function memorisation(state) {
    const x = logspace(KAPPAS[0], KAPPAS[KAPPAS.length - 1], 160), y = x.map((kappa) => at(state, { kappa }).g);
    const shown = y.filter(Number.isFinite);
    return {
      title: "Memorisation e_ICL − e_IDG",
      lines: [
        { x, y, color: NEW, width: 2.4, label: "this layer" },
        { x, y: x.map((kappa) => Math.max(0, 1 - kappa)), color: GRAY, dash: "6 4", label: "α, τ → ∞" },
      ],
      points: [here(state.kappa, at(state).g, "this setting")],
      rules: [{ x: 1, color: GRAY, dash: "2 4", label: "κ = 1" }, { y: 0, color: GRAY, width: 1 }],
      x: { label: "pretraining tasks κ = k/d", domain: [KAPPAS[0], KAPPAS[KAPPAS.length - 1]], log: true },
      y: { label: "e_ICL − e_IDG", domain: [Math.min(-0.1, ...shown), Math.min(3, Math.max(1.1, ...shown))] },
    };
  }

  function describe(state) {
    const { icl, idg, g } = at(state), best = theory.ridgeInContext(state.alpha, state.rho);
    const facts = [
      `As d grows, the pretrained layer errs by ${text(icl)} on a new task and by ${text(idg)} on a pretraining task. Ridge `
        + `regression on the context alone errs by ${text(best)}; predicting 0 by ${text(1 + state.rho)}.`,
    ];
    if (Math.abs(state.tau - 1) < 0.2 && state.ridge < 0.01) {
      facts.push("Near τ = 1 the layer has as many parameters as contexts: the errors peak. Raise the ridge to remove the peak.");
    }
    if (g < 0) facts.push("Memorisation is negative here: a pretraining task is predicted worse than a new one.");
    else if (state.kappa < 1) facts.push("There are fewer tasks than dimensions: the layer memorises them.");
    return facts;
  }

  function render(state, data) {
    const { alpha, kappa, tau, rho, ridge } = state;
    const chips = new Map(data.icl.layers.map((row) => {
      const { alpha: a, kappa: k, rho: p, ridge: m } = row;
      return [`α = ${text(a)}, κ = ${text(k)}, ρ = ${text(p)}, ridge ${text(m)}`, { alpha: a, kappa: k, rho: p, ridge: m }];
    }));
    return {
      facts: describe(state),
      charts: [
        sweep(state, data, { key: "tau", title: "Double descent", label: "contexts τ = n/d²", values: TAUS,
          rules: [{ x: 1, color: GRAY, dash: "2 4", label: "τ = 1" }] }),
        memorisation(state),
        sweep(state, data, { key: "alpha", title: "Longer contexts", label: "context length α = l/d", values: ALPHAS }),
      ],
      command: `attnlab run icl.double_descent --set alpha=${alpha} --set kappa=${kappa} --set rho=${rho} --set ridge=${ridge}`,
      python: `from attnlab import icl; print(icl.theory.errors(${alpha}, ${kappa}, ${tau}, ${rho}, ${ridge}))`,
      nothing: data.icl.layers.length ? "" : "attnlab reproduce icl.double_descent icl.context_length",
      chips: [...chips].slice(0, 12),
    };
  }

  const setting = (s) => `α = ${text(s.alpha)}, κ = ${text(s.kappa)}, τ = ${text(s.tau)}, ρ = ${text(s.rho)}, `
    + `ridge ${text(s.ridge)}`;
  const presets = [
    ["memorises", { alpha: 10, kappa: 0.2, tau: 2, rho: 0.01, ridge: 1e-5 }],
    ["learns in context", { alpha: 10, kappa: 10, tau: 2, rho: 0.01, ridge: 1e-5 }],
    ["interpolation peak", { alpha: 10, kappa: 10, tau: 1.1, rho: 0.01, ridge: 1e-5 }],
    ["ridge removes the peak", { alpha: 10, kappa: 10, tau: 1.1, rho: 0.01, ridge: 0.03 }],
    ["a longer context hurts", { alpha: 100, kappa: 0.5, tau: 2, rho: 0.25, ridge: 1e-5 }],
  ];
  return { controls, render, setting, presets };
})(attnlab.iclTheory, attnlab.numbers, attnlab.axes, attnlab.series);
