// Random-feature attention: the learning curve of ridge regression with infinitely many heads, as in attnlab.rfa.
"use strict";

attnlab.rfaTheory = ((numbers) => {
  // The effective ridge kappa: sum_i lam_i / (lam_i + kappa) + (n ridge + tail) / kappa = n.
  function effectiveRidge(bulk, n, ridge) {
    const constant = n * ridge + bulk.tail;
    const excess = (log) => {
      const kappa = Math.exp(log);
      let sum = constant / kappa - n;
      for (let i = 0; i < bulk.eigenvalue.length; i++) {
        sum += bulk.multiplicity[i] * bulk.eigenvalue[i] / (bulk.eigenvalue[i] + kappa);
      }
      return sum;
    };
    // bisect the long bracket first: the secant rule wants a nearly straight piece
    let low = Math.log(1e-30), high = Math.log(bulk.trace + ridge + 1) + 5;
    while (high - low > 0.5) {
      const middle = (low + high) / 2;
      if (excess(middle) > 0) low = middle; else high = middle;
    }
    return Math.exp(numbers.root(excess, low, high));
  }

  // Test error over Var f*, from the spectrum (bulk) and the target's energies in its eigenspaces (modes).
  function learningCurve(bulk, modes, variance, n, ridge = 1e-6, noise = 0) {
    const kappa = effectiveRidge(bulk, n, ridge);
    let spent = 0, bias = 0;
    for (let i = 0; i < bulk.eigenvalue.length; i++) {
      spent += bulk.multiplicity[i] * (bulk.eigenvalue[i] / (bulk.eigenvalue[i] + kappa)) ** 2;
    }
    for (let i = 0; i < modes.energy.length; i++) {
      bias += modes.energy[i] * (kappa / (modes.eigenvalue[i] + kappa)) ** 2;
    }
    const variance2 = noise * noise;
    return ((bias + variance2) / (1 - spent / n) - variance2) / variance;
  }

  return { effectiveRidge, learningCurve };
})(attnlab.numbers);
