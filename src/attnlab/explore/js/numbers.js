// Special functions, roots and small linear algebra that the views share.
"use strict";
const attnlab = { views: {} };

attnlab.numbers = (() => {
  // erf by its Taylor series below 2.5, erfc by its continued fraction above; error below 1e-14.
  function erf(x) {
    const a = Math.abs(x);
    if (a > 6) return Math.sign(x);
    if (a < 2.5) {
      let term = x, sum = x;
      for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(sum); n++) {
        term *= -x * x / n;
        sum += term / (2 * n + 1);
        if (n > 120) break;
      }
      return 2 / Math.sqrt(Math.PI) * sum;
    }
    let fraction = a;
    for (let n = 80; n >= 1; n--) fraction = a + n / 2 / fraction;
    return Math.sign(x) * (1 - Math.exp(-a * a) / (Math.sqrt(Math.PI) * fraction));
  }

  // Nodes and weights on [0, 1], by Newton's method on the Legendre polynomial.
  function gaussLegendre(n) {
    const nodes = [], weights = [];
    for (let i = 0; i < n; i++) {
      let x = Math.cos(Math.PI * (i + 0.75) / (n + 0.5)), slope = 1;
      for (let step = 0; step < 100; step++) {
        let before = 1, here = x;
        for (let k = 2; k <= n; k++) [before, here] = [here, ((2 * k - 1) * x * here - (k - 1) * before) / k];
        slope = n * (x * here - before) / (x * x - 1);
        const change = here / slope;
        x -= change;
        if (Math.abs(change) < 1e-16) break;
      }
      nodes.push((1 + x) / 2);
      weights.push(1 / ((1 - x * x) * slope * slope));
    }
    return { nodes, weights };
  }

  const RULE = gaussLegendre(24);

  // Owen's T for a ratio at most one: T(h, r) = (1 / 2 pi) int_0^r exp(-h^2 (1 + x^2) / 2) / (1 + x^2) dx.
  function owensT(h, r) {
    let sum = 0;
    for (let i = 0; i < RULE.nodes.length; i++) {
      const square = 1 + (r * RULE.nodes[i]) ** 2;
      sum += RULE.weights[i] / square * Math.exp(-0.5 * h * h * square);
    }
    return r / (2 * Math.PI) * sum;
  }

  // The root of a monotone function in [low, high]: the Illinois variant of the secant rule.
  function root(f, low, high, tolerance = 1e-13) {
    let fLow = f(low), fHigh = f(high), side = 0;
    for (let i = 0; i < 200; i++) {
      const x = (low * fHigh - high * fLow) / (fHigh - fLow), fx = f(x);
      if (fx === 0 || Math.abs(high - low) < tolerance * (1 + Math.abs(x))) return x;
      if (fx * fHigh > 0) {
        high = x; fHigh = fx;
        if (side === -1) fLow /= 2;
        side = -1;
      } else {
        low = x; fLow = fx;
        if (side === 1) fHigh /= 2;
        side = 1;
      }
    }
    return (low + high) / 2;
  }

  // All complex roots of a monic polynomial x^n + c[0] x^(n-1) + ..., by simultaneous (Durand-Kerner) iteration.
  function polynomialRoots(c) {
    const n = c.length, size = 1 + Math.max(...c.map(Math.abs));
    let re = [], im = [];
    for (let i = 0; i < n; i++) {
      re.push(size ** (1 / n) * Math.cos(0.4 + 2 * Math.PI * i / n));
      im.push(size ** (1 / n) * Math.sin(0.4 + 2 * Math.PI * i / n));
    }
    for (let step = 0; step < 500; step++) {
      let moved = 0;
      for (let i = 0; i < n; i++) {
        let a = 1, b = 0;
        for (const k of c) [a, b] = [a * re[i] - b * im[i] + k, a * im[i] + b * re[i]];
        for (let j = 0; j < n; j++) {
          if (j === i) continue;
          const u = re[i] - re[j], v = im[i] - im[j], norm = u * u + v * v || 1e-300;
          [a, b] = [(a * u + b * v) / norm, (b * u - a * v) / norm];
        }
        re[i] -= a; im[i] -= b;
        moved = Math.max(moved, Math.hypot(a, b) / (1e-300 + Math.hypot(re[i], im[i])));
      }
      if (moved < 1e-15) break;
    }
    return re.map((x, i) => [x, im[i]]);
  }

  // Solves A x = b by elimination with row exchange; A is overwritten.
  function solve(A, b) {
    const n = b.length, x = b.slice();
    for (let i = 0; i < n; i++) {
      let pivot = i;
      for (let r = i + 1; r < n; r++) if (Math.abs(A[r][i]) > Math.abs(A[pivot][i])) pivot = r;
      [A[i], A[pivot]] = [A[pivot], A[i]];
      [x[i], x[pivot]] = [x[pivot], x[i]];
      for (let r = i + 1; r < n; r++) {
        const factor = A[r][i] / A[i][i];
        for (let k = i; k < n; k++) A[r][k] -= factor * A[i][k];
        x[r] -= factor * x[i];
      }
    }
    for (let i = n - 1; i >= 0; i--) {
      for (let k = i + 1; k < n; k++) x[i] -= A[i][k] * x[k];
      x[i] /= A[i][i];
    }
    return x;
  }

  // Standard normal numbers from a seed (mulberry32 and the polar rule of Box and Muller).
  function normals(seed) {
    let state = (seed + 0x9e3779b9) | 0, spare = NaN;
    const uniform = () => {
      state = (state + 0x6d2b79f5) | 0;
      let t = Math.imul(state ^ (state >>> 15), 1 | state);
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
      return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    };
    return () => {
      if (spare === spare) { const kept = spare; spare = NaN; return kept; }
      let a, b, square;
      do { a = 2 * uniform() - 1; b = 2 * uniform() - 1; square = a * a + b * b; } while (square >= 1 || square === 0);
      const scale = Math.sqrt(-2 * Math.log(square) / square);
      spare = b * scale;
      return a * scale;
    };
  }

  // Eigenvalues and eigenvectors (in columns) of a symmetric matrix, by Jacobi's rotations.
  function symmetricEigen(matrix) {
    const n = matrix.length, A = matrix.map((row) => Float64Array.from(row));
    const vectors = A.map((_, i) => Float64Array.from({ length: n }, (_, j) => (i === j ? 1 : 0)));
    for (let sweep = 0; sweep < 30; sweep++) {
      let off = 0, all = 0;
      for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) { all += A[i][j] ** 2; if (i !== j) off += A[i][j] ** 2; }
      if (off <= 1e-20 * all) break;
      for (let p = 0; p < n; p++) for (let q = p + 1; q < n; q++) {
        if (Math.abs(A[p][q]) < 1e-300) continue;
        const angle = (A[q][q] - A[p][p]) / (2 * A[p][q]);
        const t = (angle >= 0 ? 1 : -1) / (Math.abs(angle) + Math.hypot(angle, 1)), c = 1 / Math.hypot(t, 1), s = t * c;
        for (let i = 0; i < n; i++) { const x = A[i][p], y = A[i][q]; A[i][p] = c * x - s * y; A[i][q] = s * x + c * y; }
        for (let i = 0; i < n; i++) { const x = A[p][i], y = A[q][i]; A[p][i] = c * x - s * y; A[q][i] = s * x + c * y; }
        for (const row of vectors) { const x = row[p], y = row[q]; row[p] = c * x - s * y; row[q] = s * x + c * y; }
      }
    }
    return { values: A.map((row, i) => row[i]), vectors };
  }

  // Piecewise linear interpolation on increasing xs, constant beyond the ends.
  function interpolate(x, xs, ys) {
    if (x <= xs[0]) return ys[0];
    const last = xs.length - 1;
    if (x >= xs[last]) return ys[last];
    let low = 0, high = last;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (xs[middle] <= x) low = middle; else high = middle;
    }
    return ys[low] + (ys[high] - ys[low]) * (x - xs[low]) / (xs[high] - xs[low]);
  }

  const linspace = (a, b, n) => Array.from({ length: n }, (_, i) => a + (b - a) * i / (n - 1));
  const logspace = (a, b, n) => linspace(Math.log(a), Math.log(b), n).map(Math.exp);

  return { erf, gaussLegendre, owensT, root, polynomialRoots, solve, interpolate, linspace, logspace, normals, symmetricEigen };
})();
