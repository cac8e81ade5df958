// Single-location regression: the exact risk of erf attention in five overlaps and its gradient flow, as in attnlab.slr.
"use strict";

attnlab.slrTheory = ((numbers) => {
  const { erf, owensT, solve } = numbers;
  const GAMMA = Math.SQRT1_2;

  const zeta = (t, s) => 1 - 8 * owensT(Math.SQRT2 * t / Math.sqrt(1 + 2 * s * s), 1 / Math.sqrt(1 + 4 * s * s));

  // E0..E3, Z..Z3 at one kappa, and C, Z0, Z02 of a token of pure noise.
  function moments(kappa, { d, lam, gamma = GAMMA }) {
    const s = lam * gamma, t = lam * Math.sqrt(d / 2) * kappa;
    const a = Math.sqrt(1 + 2 * s * s), b = Math.sqrt(1 + 4 * s * s), x = t / a;
    const slope = 2 / Math.sqrt(Math.PI) * Math.exp(-x * x);
    const Z1 = 2 / a * erf(t / (a * b)) * slope, Q = 8 / (Math.PI * a * a * b) * Math.exp(-2 * t * t / (b * b));
    const Z2 = Q - 2 * t / (a * a) * Z1, flat = 1 + 2 * lam * lam;
    return {
      E0: erf(x), E1: slope / a, E2: -2 * x * slope / (a * a), E3: (4 * x * x - 2) * slope / a ** 3,
      Z: zeta(t, s), Z1, Z2, Z3: -4 * t / (b * b) * Q - 2 / (a * a) * Z1 - 2 * t / (a * a) * Z2,
      C: 2 * lam / Math.sqrt(Math.PI * flat), Z0: 2 / Math.PI * Math.asin(2 * lam * lam / flat),
      Z02: 8 / (Math.PI * flat * Math.sqrt(1 + 4 * lam * lam)),
    };
  }

  function risk([kappa, nu, theta, eta, rho], law) {
    const { d, L, lam, gamma = GAMMA } = law, m = moments(kappa, law), mu = Math.sqrt(d / 2);
    const c1 = lam * gamma ** 2, c2 = lam ** 2 * gamma ** 4;
    const cross = gamma ** 2 * nu * m.E0 + c1 * mu * eta * theta * m.E1 + c2 * eta * rho * m.E2;
    const square = (mu ** 2 * theta ** 2 + gamma ** 2) * m.Z + 2 * c1 * mu * theta * rho * m.Z1 + c2 * rho ** 2 * m.Z2;
    const noise = (L - 1) * (m.Z0 + lam ** 2 * rho ** 2 * m.Z02) + (L - 1) * (L - 2) * m.C ** 2 * rho ** 2;
    return gamma ** 2 - 2 * cross + square + noise + 2 * (L - 1) * m.C * rho * (mu * theta * m.E0 + c1 * rho * m.E1);
  }

  function gradient([kappa, nu, theta, eta, rho], law) {
    const { d, L, lam, gamma = GAMMA } = law, m = moments(kappa, law), mu = Math.sqrt(d / 2), n = L - 1;
    const c1 = lam * gamma ** 2, c2 = lam ** 2 * gamma ** 4;
    const cross = gamma ** 2 * nu * m.E1 + c1 * mu * eta * theta * m.E2 + c2 * eta * rho * m.E3;
    const square = (mu ** 2 * theta ** 2 + gamma ** 2) * m.Z1 + 2 * c1 * mu * theta * rho * m.Z2 + c2 * rho ** 2 * m.Z3;
    const mixed = 2 * n * m.C * rho * (mu * theta * m.E1 + c1 * rho * m.E2);
    return [
      lam * mu * (square + mixed - 2 * cross),
      -2 * gamma ** 2 * m.E0,
      2 * mu * (mu * theta * m.Z - c1 * eta * m.E1 + c1 * rho * m.Z1 + n * m.C * rho * m.E0),
      -2 * (c1 * mu * theta * m.E1 + c2 * rho * m.E2),
      2 * (c1 * mu * theta * m.Z1 - c2 * eta * m.E2 + n * m.C * mu * theta * m.E0)
        + 2 * rho * (c2 * m.Z2 + n * (lam ** 2 * m.Z02 + (L - 2) * m.C ** 2 + 2 * m.C * c1 * m.E1)),
    ];
  }

  // Time derivative of the overlaps under the gradient flow on the two spheres.
  function velocity(state, law) {
    const [kappa, nu, theta, eta, rho] = state, [rk, rn, rt, re, rr] = gradient(state, law);
    const sk = kappa * rk + eta * re + rho * rr, sv = nu * rn + theta * rt + rho * rr;
    return [
      kappa * sk - rk - rr * theta,
      nu * sv - rn - rr * eta,
      theta * sv - rt - rr * kappa,
      eta * sk - re - rr * nu,
      rho * (sk + sv) - (rn * eta + rt * kappa + rr) - (rk * theta + re * nu + rr),
    ];
  }

  // d velocity / d overlaps by central differences.
  function jacobian(state, law) {
    const J = state.map(() => []), h = 1e-6;
    for (let j = 0; j < 5; j++) {
      const up = state.slice(), down = state.slice();
      up[j] += h; down[j] -= h;
      const above = velocity(up, law), below = velocity(down, law);
      for (let i = 0; i < 5; i++) J[i][j] = (above[i] - below[i]) / (2 * h);
    }
    return J;
  }

  // The flow is stiff (theta relaxes at a rate of order d): fourth-order Rosenbrock steps (P. Kaps and P. Rentrop 1979,
  // L. F. Shampine's coefficients), step adapted to the tolerance. Returns times and states.
  function flow(start, end, law, tolerance = 1e-5, maxSteps = 4000) {
    const A21 = 2, A31 = 48 / 25, A32 = 6 / 25, C21 = -8, C31 = 372 / 25, C32 = 12 / 5;
    const C41 = -112 / 125, C42 = -54 / 125, C43 = -2 / 5;
    const times = [0], states = [start.slice()];
    let y = start.slice(), t = 0, h = 1e-3;
    for (let step = 0; step < maxSteps && t < end; step++) {
      h = Math.min(h, end - t);
      const J = jacobian(y, law), f = velocity(y, law);
      const stage = (right) => solve(J.map((row, i) => row.map((v, j) => (i === j ? 2 / h : 0) - v)), right);
      const g1 = stage(f);
      const f2 = velocity(y.map((v, i) => v + A21 * g1[i]), law);
      const g2 = stage(f2.map((v, i) => v + C21 * g1[i] / h));
      const f3 = velocity(y.map((v, i) => v + A31 * g1[i] + A32 * g2[i]), law);
      const g3 = stage(f3.map((v, i) => v + (C31 * g1[i] + C32 * g2[i]) / h));
      const g4 = stage(f3.map((v, i) => v + (C41 * g1[i] + C42 * g2[i] + C43 * g3[i]) / h));
      let error = 0;
      for (let i = 0; i < 5; i++) error = Math.max(error, Math.abs(17 / 54 * g1[i] + 7 / 36 * g2[i] + 125 / 108 * g4[i]));
      if (error <= tolerance || h < 1e-12) {
        t += h;
        y = y.map((v, i) => v + 19 / 9 * g1[i] + g2[i] / 2 + 25 / 108 * g3[i] + 125 / 108 * g4[i]);
        times.push(t);
        states.push(y);
      }
      h *= Math.min(1.6, Math.max(0.3, 0.9 * (tolerance / (error + 1e-300)) ** 0.25));
    }
    return { times, states };
  }

  // The largest of the three rates at which the flow leaves M at (k*, v*); positive: the planted pair is a saddle.
  function transverseExponent(law) {
    const { d, L, lam, gamma = GAMMA } = law, m = moments(1, law), mu = Math.sqrt(d / 2), n = L - 1;
    const c1 = lam * gamma ** 2, c2 = lam ** 2 * gamma ** 4, tr = c1 * mu * m.Z1 + n * m.C * mu * m.E0;
    const rr = c2 * m.Z2 + n * (lam ** 2 * m.Z02 + (L - 2) * m.C ** 2 + 2 * m.C * c1 * m.E1);
    const H = [[mu ** 2 * m.Z, -c1 * mu * m.E1, tr], [-c1 * mu * m.E1, 0, -c2 * m.E2], [tr, -c2 * m.E2, rr]];
    const T = [[1, 0, 1], [0, 1, 1], [1, 1, 2]], [rk, rn] = gradient([1, 1, 0, 0, 0], law);
    const D = [[rn, 0, 0], [0, rk, 0], [-rk, -rn, rk + rn]];
    const A = D.map((row, i) => row.map((v, j) => v - 2 * (T[i][0] * H[0][j] + T[i][1] * H[1][j] + T[i][2] * H[2][j])));
    const trace = A[0][0] + A[1][1] + A[2][2];
    const minor = (i, j) => A[i][i] * A[j][j] - A[i][j] * A[j][i];
    const det = A[0][0] * minor(1, 2) - A[0][1] * (A[1][0] * A[2][2] - A[1][2] * A[2][0])
      + A[0][2] * (A[1][0] * A[2][1] - A[1][1] * A[2][0]);
    const roots = numbers.polynomialRoots([-trace, minor(0, 1) + minor(0, 2) + minor(1, 2), -det]);
    return Math.max(...roots.map(([re]) => re));
  }

  const oracleRisk = (law) => risk([1, 1, 0, 0, 0], law);
  const nullRisk = (gamma = GAMMA) => gamma ** 2;
  const linearRisk = (L, gamma = GAMMA) => gamma ** 2 - gamma ** 4 / (gamma ** 2 + L - 1);

  return { zeta, risk, gradient, velocity, flow, transverseExponent, oracleRisk, nullRisk, linearRisk };
})(attnlab.numbers);
