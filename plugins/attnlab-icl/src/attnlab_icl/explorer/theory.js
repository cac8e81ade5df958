// In-context regression by linear attention: errors of a pretrained layer as d grows, as in attnlab_icl.theory.
"use strict";

attnlab.iclTheory = (() => {
  const STEPS = 60;

  // Traces of the Marchenko-Pastur law at nu with ratio kappa, without subtraction.
  function traces(nu, kappa) {
    const inverse = 1 / kappa, b = nu + 1 - inverse, r = Math.hypot(b, 2 * Math.sqrt(nu * inverse));
    const S = b >= 0 ? 2 / (b + r) : (r - b) / (2 * nu * inverse);
    const a = 1 / (1 + S * inverse), r1 = a * S;
    const K = (1 + S * inverse) ** 2 / (1 + 2 * S * inverse + (inverse - 1) * S * S * inverse);
    return { S, a, r1, q: K * S * S, r2: r1 * r1 * K * (a + nu * S * inverse) };
  }

  // The effective ridge xi: xi (tau - 1 + xi S(x + xi)) = tau lambda, by Newton's method from above.
  function effectiveRidge(x, kappa, tau, ridge) {
    if (ridge === 0) {
      if (tau >= 1) return 0;
      const c = 1 + x - tau / kappa, r = Math.hypot(c, 2 * Math.sqrt(tau * x / kappa));
      return (1 - tau) * (c >= 0 ? (c + r) / (2 * tau) : 2 * x / kappa / (r - c));
    }
    let xi = ridge + (1 + x) / tau;
    for (let step = 0; step < STEPS; step++) {
      const { S, a, q } = traces(x + xi, kappa), slope = 1 - 1 / tau + xi * S / tau;
      const next = xi - (xi * slope - ridge) / (slope + xi * q * (a * a + x) / tau);
      if (!(next < xi)) break;
      xi = next;
    }
    return xi;
  }

  // Errors on new tasks (icl) and on pretraining tasks (idg), and their difference (g).
  function errors(alpha, kappa, tau, rho, ridge) {
    const x = (1 + rho) / alpha, xi = effectiveRidge(x, kappa, tau, ridge), nu = x + xi;
    const { a, r1, q, r2 } = traces(nu, kappa), P = q * (a * a + x);
    const t = ridge > 0 ? ridge / xi : Math.max(1 - 1 / tau, 0);
    const idg = (rho + nu * nu * a * a * q + x * r2) / (t + xi * P / tau), noise = idg / tau;
    const icl = rho + nu * nu * q + x * r2 + (1 + x) * P * noise;
    const g = q / kappa * (r1 * (1 + a) * (nu * nu + x * noise) + noise * a * a * (2 * r1 - 1));
    return { icl, idg, g };
  }

  // Ridge regression on one context, the best for isotropic tasks.
  function ridgeInContext(alpha, rho) {
    const { S } = traces(Math.max(rho / alpha, 1e-100), alpha);
    return rho + rho / alpha * S;
  }

  return { traces, errors, ridgeInContext };
})();
