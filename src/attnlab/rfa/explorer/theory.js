// Random-feature attention: the learning curve of ridge regression with M heads or infinitely many, as in
// attnlab.rfa.theory.equivalent, whose symbols are used. Features come in classes c: L_c are the rows of `parts`.
"use strict";

attnlab.rfaTheory = (() => {
  const TOLERANCE = 1e-12, STEPS = 200;

  const sum = (count, term) => {
    let total = 0;
    for (let i = 0; i < count; i++) total += term(i);
    return total;
  };

  // x of (I - J) x = b for one class or two.
  function solveClasses(J, b) {
    if (b.length === 1) return [b[0] / (1 - J[0][0])];
    const p = 1 - J[0][0], q = -J[0][1], r = -J[1][0], s = 1 - J[1][1], determinant = p * s - q * r;
    return [(b[0] * s - q * b[1]) / determinant, (p * b[1] - r * b[0]) / determinant];
  }

  const across = (parts, weights, j) => sum(parts.length, (c) => parts[c][j] * weights[c]);
  const inverse = (parts, grown, nu) => parts[0].map((_, j) => 1 / (across(parts, grown.map((g) => 1 / g), j) + nu));

  // The share 1 - sum_c L_cj delta_c' / (1 + delta_c)^2 of each mode.
  const kept = (parts, { grown, slope }) => {
    const weights = slope.map((s, c) => s / grown[c] ** 2);
    return parts[0].map((_, j) => 1 - across(parts, weights, j));
  };

  // delta_c and df at a given nu, with their derivatives; thin is 1 / p_c, zero for infinitely many heads.
  function at({ parts, multiplicity: m }, nu, thin) {
    const filled = (q, power) => parts.map((L) => sum(m.length, (j) => m[j] * L[j] * q[j] ** power));
    let delta = parts.map((L, c) => thin[c] * sum(m.length, (j) => m[j] * L[j]) / nu), grown, q, J, first;
    for (let i = 0; i < STEPS; i++) {
      grown = delta.map((v) => 1 + v);
      q = inverse(parts, grown, nu);
      first = filled(q, 1);
      J = parts.map((L, c) => parts.map((E, e) => (
        thin[c] * sum(m.length, (j) => m[j] * L[j] * E[j] * q[j] ** 2) / grown[e] ** 2)));
      const change = first.map((v, c) => thin[c] * v - delta[c]);
      if (change.every((v, c) => Math.abs(v) <= TOLERANCE * delta[c])) break;
      const step = solveClasses(J, change);
      delta = delta.map((v, c) => v + step[c]);
    }
    const state = { grown, slope: solveClasses(J, filled(q, 2).map((v, c) => -thin[c] * v)) }, stay = kept(parts, state);
    const fall = parts.map((L) => -sum(m.length, (j) => m[j] * L[j] * q[j] ** 2 * stay[j]));
    return { ...state, df: sum(parts.length, (c) => first[c] / grown[c]),
      dfSlope: sum(parts.length, (c) => fall[c] / grown[c] ** 2) };
  }

  // The effective ridge nu: df(nu) + constant / nu = n; Newton's method in log nu inside a bracket.
  function solve(bulk, n, units, ridge) {
    const thin = bulk.counts.map((count) => 1 / (units * count)), constant = Math.max(ridge, 1e-15 * bulk.trace);
    let low = Math.log(constant / n), high = Math.log((bulk.trace + constant) / n), log = high;
    for (let i = 0; i < STEPS; i++) {
      const nu = Math.exp(log), { df, dfSlope } = at(bulk, nu, thin), found = df + constant / nu;
      if (found > n) low = log; else high = log;
      const newton = log - Math.log(found / n) * found / (nu * dfSlope - constant / nu), before = log;
      log = newton > low - TOLERANCE && newton < high + TOLERANCE ? newton : (low + high) / 2;
      if (Math.abs(log - before) <= TOLERANCE) break;
    }
    const nu = Math.exp(log), state = at(bulk, nu, thin);
    return { ...state, nu, gap: (constant / nu - nu * state.dfSlope) / n };
  }

  // Test error over Var f*, from the spectrum (bulk) and the target's energies in its eigenspaces (modes).
  function learningCurve(bulk, modes, variance, n, units = Infinity, ridge = 1e-6) {
    const solved = solve(bulk, n, units, n * ridge + bulk.tail);
    const q = inverse(modes.parts, solved.grown, solved.nu), stay = kept(modes.parts, solved);
    return sum(q.length, (j) => modes.energy[j] * (solved.nu * q[j]) ** 2 * stay[j]) / solved.gap / variance;
  }

  return { learningCurve };
})();
