// Sequence multi-index models: the overlap over the sample complexity, and the free entropy at the chosen one.
"use strict";

attnlab.views.smi = ((theory, { linspace }, { text }, { means, here }) => {
  const CURVE = "#0072B2", RUNS = "#009E73", MARK = "#D55E00", SOFT = "#57606a", GAP = 0.01;
  let branches = [];

  function prepare(data) { branches = data.smi.branches; }

  const chosen = ({ link }) => branches.find((branch) => branch.link === link);
  // Up to where the overlap is large, in 60 steps.
  const span = (branch) => {
    const alpha = theory.needed(branch), most = alpha.find((_, i) => theory.overlapAt(branch.v[i]) > 0.95) || Math.max(...alpha);
    return 1.25 * Math.max(most, branch.weak, ...alpha.slice(0, alpha.indexOf(most) + 1));
  };
  const sizes = (state) => linspace(0, 1, 61).slice(1).map((part) => Number((part * span(chosen(state))).toPrecision(3)));
  const controls = [
    { key: "link", kind: "choice", label: "link", initial: "phase_retrieval(noise=0.0)", values: () => branches.map((b) => [b.link, b.label]) },
    { key: "alpha", kind: "range", label: "sequences per dimension α", initial: 1.05, free: true, values: sizes },
  ];

  // Pieces of the curve on which alpha rises with q, and those on which it falls.
  function pieces(branch) {
    const x = [branch.weak, ...theory.needed(branch)], y = [0, ...branch.v.map(theory.overlapAt)];
    const lines = [];
    for (let i = 1, from = 0; i < x.length; i++) {
      const rises = x[i] >= x[i - 1], next = i + 1 < x.length ? x[i + 1] >= x[i] : !rises;
      if (next === rises) continue;
      const first = !lines.some((line) => line.rises === rises);
      lines.push({ rises, x: x.slice(from, i + 1), y: y.slice(from, i + 1), color: CURVE, dash: rises ? "" : "2 4",
        label: first ? (rises ? "fixed points" : "unstable") : undefined });
      from = i;
    }
    return lines;
  }

  function overlap(state, data, set) {
    const branch = chosen(state), runs = data.smi.amp.filter((row) => row.link === branch.link);
    const values = sizes(state), shift = (way) => values[Math.max(0, Math.min(values.length - 1, nearest(values, state.alpha) + way))];
    return {
      title: "Overlap with the hidden direction", hint: "drag the ring", lines: pieces(branch),
      rules: branch.weak > 0 ? [{ x: branch.weak, color: SOFT, dash: "6 4", label: `weak recovery ${text(branch.weak)}` }] : [],
      points: runs.length ? [means(runs, "alpha", { color: RUNS, label: `AMP, d = ${[...new Set(runs.map((r) => r.d))].join(", ")}` })] : [],
      x: { label: "sequences per dimension α = n/d", domain: [0, span(branch)] },
      y: { label: "overlap q", domain: [-0.03, 1.04], ticks: [0, 0.25, 0.5, 0.75, 1] },
      handle: {
        x: state.alpha, y: theory.reached(branch, state.alpha), label: "Movable point: sequences per dimension. Arrow keys move it.",
        move: (alpha) => set({ alpha: Math.max(values[0], alpha) }), step: (right) => set({ alpha: shift(right) }),
      },
    };
  }

  const nearest = (values, wanted) => values.reduce((best, x, i) => (Math.abs(x - wanted) < Math.abs(values[best] - wanted) ? i : best), 0);

  function entropy(state) {
    const branch = chosen(state), q = [0, ...branch.v.map(theory.overlapAt)], phi = [0, ...theory.entropy(branch, state.alpha)];
    const shown = q.map((x, i) => i).filter((i) => q[i] <= 0.9999), low = Math.min(...shown.map((i) => phi[i]));
    const high = Math.max(...shown.map((i) => phi[i])), pad = 0.06 * (high - low || 1);
    const place = theory.reached(branch, state.alpha), at = nearest(q, place);
    return {
      title: "Free entropy at this α", lines: [{ x: shown.map((i) => q[i]), y: shown.map((i) => phi[i]), color: CURVE, label: "Φ(q) − Φ(0)" }],
      points: [here(q[at], phi[at], "message passing ends here")],
      x: { label: "overlap q", domain: [0, 1.02], ticks: [0, 0.25, 0.5, 0.75, 1] },
      y: { label: "free entropy per dimension", domain: [low - pad, high + pad] },
    };
  }

  function describe(state) {
    const branch = chosen(state), found = theory.reached(branch, state.alpha), best = theory.informed(branch, state.alpha);
    const words = [
      state.alpha < branch.weak
        ? `Below weak recovery (α = ${text(branch.weak)}) no small overlap grows.`
        : `Message passing reaches the overlap ${text(found, 3)} at α = ${text(state.alpha)}.`,
    ];
    if (best > found + GAP) {
      words.push(`An informed start ends at ${text(best, 3)}: two fixed points, and the higher maximum of the free entropy is Bayes-optimal.`);
    }
    return words;
  }

  function render(state, data, set) {
    const { link, figure } = chosen(state), own = figure === "smi.phase_retrieval" ? ` --set link='${link}'` : "";
    return {
      facts: describe(state),
      charts: [overlap(state, data, set), entropy(state)],
      command: `attnlab run ${figure}${own} --set alpha=${Number(state.alpha.toPrecision(4))}`,
      python: `from attnlab import smi; print(smi.theory.state_evolution("${link}", ${Number(state.alpha.toPrecision(4))}).Q)`,
      nothing: data.smi.amp.length ? "" : "attnlab reproduce smi.phase_retrieval smi.sign_committee smi.two_layers",
      chips: [],
    };
  }

  const setting = (state) => `${chosen(state).label}, α = ${text(state.alpha)}`;
  const presets = [
    ["hard phase", { link: "phase_retrieval(noise=0.0)", alpha: 1.06 }],
    ["weak recovery only", { link: "phase_retrieval(noise=0.0)", alpha: 0.7 }],
    ["no threshold", { link: "sign(noise=0.0)", alpha: 2 }],
    ["tied attention", { link: "attention(tokens=2)", alpha: 0.4 }],
    ["second layer", { link: "deep_attention(layers=2, skip=1.0)", alpha: 0.3 }],
  ];
  return { controls, prepare, render, setting, presets };
})(attnlab.smiTheory, attnlab.numbers, attnlab.axes, attnlab.series);
