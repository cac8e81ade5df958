// Attention-indexed models: the spectrum of S + sqrt(noise) GOE and the Bayes error, as in attnlab.aim.
"use strict";

attnlab.aimTheory = ((numbers) => {
  const AFTER = 1e-5; // noise that stands for none: the law of S itself, its mass at zero slightly widened
  let tables = {};

  // Samples of s(tau) / sqrt(tau) for hardmax at the nodes of a Chebyshev grid in sqrt(tau), by number of tokens.
  function load(hardmax) { tables = hardmax; }

  // g(x - i0) = 1/m as [real, imaginary]: in the bulk m is the complex root of the cubic, outside a real one.
  function stieltjes(x, noise, rho) {
    const theta = 1 / Math.sqrt(rho), mean = Math.sqrt(rho);
    const a = -(x + theta - mean), b = noise + theta * x, c = -theta * noise;
    const shift = a / 3, p = b - a * a / 3, q = 2 * shift ** 3 - shift * b + c;
    const inside = q * q / 4 + p ** 3 / 27;
    const polish = (m) => {
      for (let i = 0; i < 3; i++) {
        const slope = (3 * m + 2 * a) * m + b, step = (((m + a) * m + b) * m + c) / slope;
        if (Math.abs(step) < 0.1 * Math.abs(m)) m -= step;
      }
      return m;
    };
    if (inside <= 0) {
      // three real roots: outside the bulk, the one on which x grows with m
      const size = 2 * Math.sqrt(-p / 3), angle = Math.acos(Math.max(-1, Math.min(1, 3 * q / (p * size)))) / 3;
      let best = 0, steepest = -Infinity;
      for (let k = 0; k < 3; k++) {
        const m = polish(size * Math.cos(angle - 2 * Math.PI * k / 3) - shift);
        const slope = 1 - theta * mean / (m - theta) ** 2 - noise / (m * m);
        if (slope > steepest) [best, steepest] = [m, slope];
      }
      return [1 / best, 0];
    }
    const half = Math.sqrt(inside), big = Math.cbrt(q > 0 ? -q / 2 - half : -q / 2 + half);
    const r = polish(big - p / (3 * big) - shift);
    // the other two roots are those of m^2 + (a + r) m + b + r (a + r); then Newton steps in the complex plane
    let u = -(a + r) / 2, v = -Math.sqrt(Math.max(b + r * (a + r) - u * u, 0));
    for (let i = 0; i < 2; i++) {
      let [f, g] = [u + a, v];
      [f, g] = [f * u - g * v + b, f * v + g * u];
      [f, g] = [f * u - g * v + c, f * v + g * u];
      let [s, t] = [3 * u + 2 * a, 3 * v];
      [s, t] = [s * u - t * v + b, s * v + t * u];
      const norm = s * s + t * t, [du, dv] = [(f * s + g * t) / norm, (g * s - f * t) / norm];
      if (Math.hypot(du, dv) < 0.1 * Math.hypot(u, v)) { u -= du; v -= dv; }
    }
    const norm = u * u + v * v;
    return [u / norm, Math.max(-v / norm, 0)];
  }

  const density = (x, noise, rho) => stieltjes(x, noise, rho)[1] / Math.PI;
  const shrink = (x, noise, rho) => x - 2 * noise * stieltjes(x, noise, rho)[0];

  // m = 1/g at the 2 or 4 ends of the bulk(s), where 1/(m - theta)^2 + noise/m^2 = 1: Newton's method on the inverse
  // root of the left side, monotone from these starts.
  function turningPoints(noise, rho) {
    const theta = 1 / Math.sqrt(rho), root = Math.sqrt(noise), third = Math.cbrt(noise);
    const side = (m) => 1 / (m - theta) ** 2 + noise / (m * m);
    const starts = [-Math.max(root, 1 - theta), Math.max(root, 1 + theta)];
    if (side(theta * third / (1 + third)) < 1) starts.splice(1, 0, root, theta - 1);
    return starts.map((m) => {
      for (let i = 0; i < 60; i++) {
        const s = side(m), step = (s - s ** 1.5) / (1 / (m - theta) ** 3 + noise / m ** 3);
        m -= step;
        if (Math.abs(step) <= 4e-15 * Math.abs(m)) break;
      }
      return m;
    });
  }

  function edges(noise, rho) {
    return turningPoints(noise, rho).map((m) => m + Math.sqrt(rho) * m / (m - 1 / Math.sqrt(rho)) + noise / m);
  }

  // The bulk(s) by v, the denoised eigenvalue over the prior mean sqrt(rho), which makes all else explicit (see the
  // docs): log v = centre + half-width cos(phi), midpoint rule in phi; increasing in x.
  function quadrature(noise, rho, nodes) {
    const theta = 1 / Math.sqrt(rho), mean = Math.sqrt(rho), weights = [], density = [], denoised = [];
    const ends = turningPoints(noise, rho).map((m) => (m / (m - theta)) ** 2);
    for (let bulk = 0; bulk + 1 < ends.length; bulk += 2) {
      const low = ends[bulk], high = ends[bulk + 1], half = Math.log(high / low) / 2;
      const sum = 2 * (theta * theta + 1 - noise) - low - high, product = noise * noise / (low * high);
      for (let i = nodes - 1; i >= 0; i--) {
        const phi = (i + 0.5) * Math.PI / nodes;
        const up = Math.expm1(2 * half * Math.cos(phi / 2) ** 2), down = Math.expm1(-2 * half * Math.sin(phi / 2) ** 2);
        const v = low + low * up, s = v + noise, others = (v - sum) * v + product;
        weights.push((mean * (v + noise / v) - theta * noise * v / (s * s)) * half * Math.sin(phi) * Math.PI / nodes);
        density.push(Math.sqrt(Math.max(-low * high * up * down * others, 0)) / (2 * Math.PI * theta * v * s));
        denoised.push(mean * v);
      }
    }
    return { weights, density, denoised };
  }

  // The Bayes error of denoising: noise - (4 pi^2 / 3) noise^2 int mu^3, or 1 - int (denoised - mean)^2 mu where that
  // form would cancel.
  function denoising(noise, rho) {
    if (noise < 1e-12) return slope(rho) * noise;
    if (noise > 1e8 * Math.max(1, 1 / rho)) return 1 - 1 / noise;
    for (const nodes of [64, 256, 1024, 4096]) {
      const bulk = quadrature(noise, rho, nodes);
      let mass = 0, cubed = 0, explained = 0;
      for (let i = 0; i < bulk.weights.length; i++) {
        const part = bulk.weights[i] * bulk.density[i];
        mass += part;
        cubed += part * bulk.density[i] ** 2;
        explained += part * (bulk.denoised[i] - Math.sqrt(rho)) ** 2;
      }
      if (Math.abs(mass - 1) < 1e-10 || nodes === 4096) {
        return noise < 1 ? noise * (1 - 4 * Math.PI ** 2 / 3 * noise * cubed) : 1 - explained;
      }
    }
  }

  const measurements = (tokens) => (tokens * tokens + tokens - 2) / 2;
  const slope = (rho) => (rho < 1 ? 2 * rho - rho * rho : 1);

  function threshold(rho, tokens, channel = "softmax") {
    return channel === "softmax" ? slope(rho) / (2 * measurements(tokens)) : Infinity;
  }

  // s(tau) = V E|g|^2 of hardmax: barycentric interpolation in sqrt(tau).
  function hardmaxScale(tau, tokens) {
    const values = tables[tokens], n = values.length, root = Math.sqrt(tau);
    let top = 0, bottom = 0;
    for (let i = 0; i < n; i++) {
      const phi = (i + 0.5) * Math.PI / n, gap = root - (1 - Math.cos(phi)) / 2;
      if (gap === 0) return root * values[i];
      const weight = (i % 2 ? -1 : 1) * Math.sin(phi) / gap;
      top += weight * values[i];
      bottom += weight;
    }
    return root * top / bottom;
  }

  // alpha at which the effective noise has this value, given the error F there.
  function alphaOf(noise, error, rho, tokens, channel) {
    const scale = channel === "softmax" ? measurements(tokens) : hardmaxScale(error / (1 + rho), tokens);
    return error / (2 * noise * scale);
  }

  // The effective noise at the fixed point: alpha(noise) falls, so one root in log(noise).
  function effectiveNoise(alpha, rho, tokens, channel) {
    if (alpha >= threshold(rho, tokens, channel)) return 0;
    const gap = (log) => {
      const noise = Math.exp(log);
      return Math.log(alphaOf(noise, denoising(noise, rho), rho, tokens, channel) / alpha);
    };
    return Math.exp(numbers.root(gap, Math.log(1e-9), Math.log(1e8), 1e-12));
  }

  function mmse(alpha, rho, tokens, channel = "softmax") {
    const noise = effectiveNoise(alpha, rho, tokens, channel);
    return noise ? denoising(noise, rho) : 0;
  }

  // The curve (alpha, error), increasing in alpha, from the threshold's side of the smallest noise on.
  function curve(rho, tokens, channel, points = 90) {
    const levels = numbers.logspace(1e3, channel === "softmax" ? 1e-6 : 1e-7, points);
    const alpha = [0], error = [1];
    for (const noise of levels) {
      error.push(denoising(noise, rho));
      alpha.push(alphaOf(noise, error[error.length - 1], rho, tokens, channel));
    }
    if (channel === "softmax") { alpha.push(threshold(rho, tokens)); error.push(0); }
    return { alpha, error };
  }

  // Eigenvalues of the estimate at given effective noise and their distribution function.
  function law(noise, rho) {
    const delta = Math.max(noise, AFTER), bulk = quadrature(delta, rho, 800), cdf = [];
    let mass = 0;
    for (let i = 0; i < bulk.weights.length; i++) {
      mass += bulk.weights[i] * bulk.density[i];
      cdf.push(mass);
    }
    return { x: bulk.denoised, cdf };
  }

  return { load, stieltjes, density, shrink, edges, denoising, threshold, hardmaxScale, effectiveNoise, mmse, curve, law,
    measurements };
})(attnlab.numbers);
