// Message passing in a small dimension on softmax outputs, one iteration at a time: it lands on the line of the Bayes error.
"use strict";

attnlab.aimLive = ((theory, { normals, symmetricEigen }) => {
  const zeros = (d) => Array.from({ length: d }, () => new Float64Array(d));

  // S = W W^T / sqrt(r d), W of r = rho d columns.
  function plant(d, rho, draw) {
    const r = Math.max(1, Math.round(rho * d)), W = Array.from({ length: d }, () => Float64Array.from({ length: r }, draw));
    const S = zeros(d);
    for (let i = 0; i < d; i++) for (let j = 0; j < d; j++) {
      for (let c = 0; c < r; c++) S[i][j] += W[i][c] * W[j][c] / Math.sqrt(r * d);
    }
    return S;
  }

  // Whitened indices z_ab = (x_a S x_b - [a = b] Tr S) / sqrt(d (1 + [a = b])), a <= b, of one sequence.
  function indices(S, X, pairs) {
    const d = S.length, trace = S.reduce((sum, row, i) => sum + row[i], 0);
    const images = X.map((x) => S.map((row) => { let s = 0; for (let j = 0; j < d; j++) s += row[j] * x[j]; return s; }));
    return pairs.map(([a, b]) => {
      let form = 0;
      for (let i = 0; i < d; i++) form += X[a][i] * images[b][i];
      return (form - (a === b ? trace : 0)) / Math.sqrt(d * (a === b ? 2 : 1));
    });
  }

  // Adds the adjoint of `indices` at g to R.
  function spread(R, X, g, pairs, factor) {
    const d = R.length;
    pairs.forEach(([a, b], p) => {
      const weight = factor * g[p] / Math.sqrt(d * (a === b ? 2 : 1));
      for (let i = 0; i < d; i++) {
        for (let j = 0; j < d; j++) R[i][j] += weight * 0.5 * (X[a][i] * X[b][j] + X[b][i] * X[a][j]);
        if (a === b) R[i][i] -= weight;
      }
    });
  }

  // Eigenvalues moved by the posterior mean, clipped to the bulk: outliers of rank-one tokens are noise.
  function denoise(R, noise, rho) {
    const { values, vectors } = symmetricEigen(R), d = R.length, S = zeros(d), ends = theory.edges(noise, rho);
    const [low, high] = [ends[0], ends[ends.length - 1]];
    const shrunk = Array.from(values, (v) => theory.shrink(Math.min(high, Math.max(low, v)), noise, rho));
    for (let i = 0; i < d; i++) for (let j = 0; j <= i; j++) {
      let sum = 0;
      for (let e = 0; e < d; e++) sum += shrunk[e] * vectors[i][e] * vectors[j][e];
      S[i][j] = S[j][i] = sum;
    }
    return S;
  }

  function simulator({ d, tokens, rho, alpha }, seed = 0) {
    const draw = normals(seed), S = plant(d, rho, draw), n = Math.round(alpha * d * d), pairs = [];
    for (let a = 0; a < tokens; a++) for (let b = a; b < tokens; b++) pairs.push([a, b]);
    // Softmax fixes h up to a constant: the direction of that constant in whitened indices is not seen.
    const unseen = pairs.map(([a, b]) => (a === b ? Math.SQRT1_2 : 1)), size = Math.hypot(...unseen);
    const seen = (z) => {
      const along = z.reduce((sum, v, p) => sum + v * unseen[p], 0) / size ** 2;
      return z.map((v, p) => v - along * unseen[p]);
    };
    const data = Array.from({ length: n }, () => Array.from({ length: tokens }, () => Float64Array.from({ length: d }, draw)));
    const observed = data.map((X) => seen(indices(S, X, pairs))), k = theory.measurements(tokens);
    let estimate = zeros(d), V = 1, messages = data.map(() => pairs.map(() => 0)), iteration = 0;
    for (let i = 0; i < d; i++) estimate[i][i] = Math.sqrt(rho);

    function advance(damping = 0.6) {
      const noise = V / (2 * alpha * k), R = estimate.map((row) => row.slice());
      data.forEach((X, s) => {
        const omega = indices(estimate, X, pairs).map((z, p) => z - V * messages[s][p]);
        const fresh = seen(observed[s].map((z, p) => z - omega[p])).map((v) => v / V);
        messages[s] = fresh.map((g, p) => (iteration ? damping * g + (1 - damping) * messages[s][p] : g));
        spread(R, X, messages[s], pairs, 2 * noise / d);
      });
      const next = denoise(R, noise, rho);
      estimate = next.map((row, i) => row.map((v, j) => damping * v + (1 - damping) * estimate[i][j]));
      V = damping * (1 + 1 / d) * theory.denoising(noise, rho) + (1 - damping) * V;
      iteration += 1;
    }

    const error = () => S.reduce((sum, row, i) => sum + row.reduce((s, v, j) => s + (v - estimate[i][j]) ** 2, 0), 0) / d;
    return { advance, error, iteration: () => iteration };
  }

  return { simulator };
})(attnlab.aimTheory, attnlab.numbers);
