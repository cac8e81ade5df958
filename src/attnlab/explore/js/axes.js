// Scales and ticks of a chart.
"use strict";

attnlab.axes = (() => {
  const superscript = (digit) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(digit)];

  // A number as a person writes it: 0.05, −1.5, 10⁻⁶, 3·10⁹.
  function text(value, digits = 4) {
    if (value === Infinity) return "∞";
    if (!Number.isFinite(value)) return "–";
    const size = Math.abs(value);
    if (value !== 0 && (size < 1e-3 || size >= 1e5)) {
      const [mantissa, exponent] = value.toExponential(digits - 1).split("e");
      const power = "10" + [...String(Number(exponent))].map(superscript).join("");
      const front = String(Number(mantissa)).replace("-", "−");
      return front === "1" ? power : `${front}·${power}`;
    }
    return String(Number(value.toPrecision(digits))).replace("-", "−");
  }

  function linearTicks([low, high], wanted) {
    const rough = (high - low) / wanted, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough);
    const ticks = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) {
      ticks.push(Number((i * step).toPrecision(12)));
    }
    return ticks;
  }

  function logTicks([low, high], wanted) {
    const decades = Math.log10(high / low), ticks = [];
    const parts = decades < wanted / 3 ? [1, 2, 5] : [1];
    const stride = Math.max(1, Math.ceil(decades / wanted));
    for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++) {
      for (const part of parts) {
        const tick = Number((part * 10 ** e).toPrecision(6));
        if (e % stride === 0 && tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9)) ticks.push(tick);
      }
    }
    return ticks;
  }

  // Maps a domain to pixels and back; `wanted` is about how many ticks there is room for.
  function scale({ domain, log = false, ticks }, [from, to], wanted) {
    const f = log ? Math.log : (x) => x, g = log ? Math.exp : (x) => x;
    const low = f(domain[0]), span = f(domain[1]) - low;
    const position = (value) => from + (to - from) * (f(value) - low) / span;
    const invert = (pixel) => g(low + span * Math.min(1, Math.max(0, (pixel - from) / (to - from))));
    return { position, invert, ticks: ticks || (log ? logTicks : linearTicks)(domain, wanted), domain };
  }

  return { scale, text };
})();
