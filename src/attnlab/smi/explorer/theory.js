// A scalar branch of state evolution: q = alpha S(q), and the free entropy along it, from a table of S over v = -log(1 - q).
"use strict";

attnlab.smiTheory = (({ interpolate }) => {
  const overlapAt = (v) => -Math.expm1(-v);
  const needed = ({ v, S }) => v.map((x, i) => overlapAt(x) / S[i]);

  // Message passing reaches an overlap from the largest alpha(q) before it on; it starts at the weak-recovery threshold.
  function reached(branch, alpha) {
    let most = branch.weak;
    const from = [most, ...needed(branch).map((a) => (most = Math.max(most, a)))];
    return interpolate(alpha, from, [0, ...branch.v.map(overlapAt)]);
  }

  // The largest fixed point: an overlap stays from the smallest alpha(q) after it on.
  function informed(branch, alpha) {
    let least = Infinity;
    const from = needed(branch).reverse().map((a) => (least = Math.min(least, a))).reverse();
    return alpha < from[0] ? 0 : interpolate(alpha, from, branch.v.map(overlapAt));
  }

  // Phi(q) - Phi(0) = (1/2) int (alpha S - q) dv, by the trapezoid rule.
  function entropy({ v, S }, alpha) {
    let sum = 0, before = 0, place = 0;
    return v.map((x, i) => {
      const slope = 0.5 * (alpha * S[i] - overlapAt(x));
      sum += 0.5 * (slope + before) * (x - place);
      [before, place] = [slope, x];
      return sum;
    });
  }

  return { overlapAt, needed, reached, informed, entropy };
})(attnlab.numbers);
