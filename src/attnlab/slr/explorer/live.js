// Stochastic gradient descent in d dimensions, a few steps at a time: what the exact flow of the overlaps predicts.
"use strict";

attnlab.slrLive = (({ erf, normals }) => {
  const BATCH = 20, LARGEST = 40; // beyond this d a step takes too long to watch

  function dot(a, b) {
    let sum = 0;
    for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
    return sum;
  }

  // Steps shorter than the stiffest rate, which is of order d.
  const stepSize = (d) => 0.2 / d;

  // Unit vectors k and v with overlaps [kappa, nu, theta, eta, rho] in a basis that begins with k* and v*.
  function plant([kappa, nu, theta, eta, rho], d) {
    const k = new Float64Array(d), v = new Float64Array(d);
    const restK = Math.sqrt(Math.max(0, 1 - kappa ** 2 - eta ** 2)), restV = Math.sqrt(Math.max(0, 1 - nu ** 2 - theta ** 2));
    const along = restK * restV > 1e-12 ? Math.max(-1, Math.min(1, (rho - kappa * theta - eta * nu) / (restK * restV))) : 0;
    k.set([kappa, eta, restK]);
    v.set([theta, nu, restV * along, restV * Math.sqrt(1 - along ** 2)]);
    return { k, v };
  }

  // One step of length `step` along the gradient in the tangent space, then back to the sphere.
  function move(vector, gradient, step) {
    const radial = dot(vector, gradient);
    for (let i = 0; i < vector.length; i++) vector[i] -= step * (gradient[i] - radial * vector[i]);
    const size = Math.sqrt(dot(vector, vector));
    for (let i = 0; i < vector.length; i++) vector[i] /= size;
  }

  function simulator(overlaps, { d, L, lam }, seed = 0) {
    const { k, v } = plant(overlaps, d), draw = normals(seed), step = stepSize(d), mu = Math.sqrt(d / 2);
    const x = new Float64Array(d), tokens = Array.from({ length: L }, () => new Float64Array(d));
    let time = 0;

    // Gradient of one squared error, added to gk and gv; the first token is the informative one, as the sum has no order.
    function add(gk, gv) {
      let output = 0, target = 0;
      const score = [], value = [];
      tokens.forEach((token, l) => {
        for (let i = 0; i < d; i++) token[i] = l ? draw() : Math.SQRT1_2 * draw();
        if (!l) { token[0] += mu; target = token[1]; }
        score.push(lam * dot(token, k));
        value.push(dot(token, v));
        output += erf(score[l]) * value[l];
      });
      const residual = -2 * (target - output) / BATCH;
      tokens.forEach((token, l) => {
        const slope = residual * lam * 2 / Math.sqrt(Math.PI) * Math.exp(-(score[l] ** 2)) * value[l];
        const weight = residual * erf(score[l]);
        for (let i = 0; i < d; i++) { gk[i] += slope * token[i]; gv[i] += weight * token[i]; }
      });
    }

    function advance() {
      const gk = x.map(() => 0), gv = x.map(() => 0);
      for (let b = 0; b < BATCH; b++) add(gk, gv);
      move(k, gk, step);
      move(v, gv, step);
      time += step;
    }

    return { advance, overlaps: () => [k[0], v[1], v[0], k[1], dot(k, v)], time: () => time };
  }

  return { simulator, LARGEST };
})(attnlab.numbers);
