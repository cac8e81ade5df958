// One chart as SVG: theory as lines, simulation as points with error bars, a heat map behind, a movable point in front.
"use strict";

attnlab.plot = ((axes) => {
  const NS = "http://www.w3.org/2000/svg";
  // Colours of the style sheet, so that charts follow light and dark.
  const INK = "var(--ink)", SOFT = "var(--soft)", LINE = "var(--line)", PAPER = "var(--paper)";
  const TONES = { "#000000": INK, "#57606a": SOFT, "#0072b2": "var(--blue)", "#d55e00": "var(--orange)",
    "#009e73": "var(--green)", "#cc79a7": "var(--pink)" };
  const tone = (color) => TONES[color?.toLowerCase()] || color;
  const dark = () => matchMedia("(prefers-color-scheme: dark)").matches;
  const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
  const MARKERS = {
    o: "M-4,0A4,4 0 1,0 4,0A4,4 0 1,0 -4,0Z", s: "M-3.6,-3.6H3.6V3.6H-3.6Z", "^": "M0,-4.6L4.4,3.4H-4.4Z",
    D: "M0,-4.8L4.8,0L0,4.8L-4.8,0Z", v: "M0,4.6L4.4,-3.4H-4.4Z", x: "M-3.5,-3.5L3.5,3.5M-3.5,3.5L3.5,-3.5",
  };
  const ruler = document.createElement("canvas").getContext("2d");
  let count = 0;

  function node(name, attributes = {}, parent = null, content = null) {
    const made = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (content !== null) made.textContent = content;
    if (parent) parent.appendChild(made);
    return made;
  }

  function width(words, size = 13) {
    ruler.font = `${size}px ${FONT}`;
    return ruler.measureText(words).width;
  }

  const label = (axis, tick) => (axis.format ? axis.format(tick) : axes.text(tick, 6));

  const path = (x, y) => {
    let d = "", pen = "M";
    for (let i = 0; i < x.length; i++) {
      if (Number.isFinite(x[i]) && Number.isFinite(y[i])) {
        d += `${pen}${x[i].toFixed(2)},${y[i].toFixed(2)}`;
        pen = "L";
      } else pen = "M";
    }
    return d;
  };

  // The colours of a heat map, from paper (low) to blue (high): order is legible in grey as well.
  function shade(t) {
    const stops = dark()
      ? [[13, 17, 23], [18, 44, 76], [28, 76, 128], [52, 116, 178], [108, 166, 216]]
      : [[255, 255, 255], [222, 235, 247], [158, 202, 225], [87, 156, 205], [33, 102, 172]];
    const at = Math.min(0.9999, Math.max(0, t)) * (stops.length - 1), i = Math.floor(at), part = at - i;
    return stops[i].map((c, k) => Math.round(c + (stops[i + 1][k] - c) * part));
  }

  function heatImage({ values, domain }) {
    const canvas = document.createElement("canvas");
    canvas.height = values.length;
    canvas.width = values[0].length;
    const context = canvas.getContext("2d"), image = context.createImageData(canvas.width, canvas.height);
    values.forEach((row, r) => row.forEach((value, c) => {
      const at = 4 * ((values.length - 1 - r) * canvas.width + c);
      image.data.set([...shade((value - domain[0]) / (domain[1] - domain[0])), 255], at);
    }));
    context.putImageData(image, 0, 0);
    return canvas.toDataURL();
  }

  function legend(svg, spec, room, left) {
    const items = [
      ...(spec.heat ? [{ kind: "heat", ...spec.heat }] : []),
      ...(spec.lines || []).map((s) => ({ kind: "line", ...s })),
      ...(spec.rules || []).map((s) => ({ kind: "line", ...s })),
      ...(spec.points || []).map((s) => ({ kind: "points", ...s })),
    ].filter((item) => item.label);
    let x = left, y = 12;
    for (const item of items) {
      const symbol = item.kind === "heat" ? 48 : 26, words = item.label, wide = symbol + 8 + width(words) + 18;
      if (x > left && x + wide - 18 > left + room) { x = left; y += 20; }
      const group = node("g", { transform: `translate(${x},${y})` }, svg);
      if (item.kind === "heat") {
        for (let i = 0; i < 24; i++) {
          node("rect", { x: 2 * i, y: -6, width: 2.2, height: 12, fill: `rgb(${shade(i / 23)})` }, group);
        }
        node("rect", { x: 0, y: -6, width: 48, height: 12, fill: "none", stroke: SOFT, "stroke-width": 0.6 }, group);
      } else if (item.kind === "line") {
        node("line", { x1: 0, x2: symbol, y1: 0, y2: 0, stroke: item.color, "stroke-width": item.width || 2,
          "stroke-dasharray": item.dash || "" }, group);
      } else {
        if (item.low) node("path", { d: "M13,-7V7M10,-7H16M10,7H16", stroke: item.color, fill: "none" }, group);
        marker(group, 13, 0, item);
      }
      node("text", { x: symbol + 7, y: 4.5, fill: INK, "font-size": 13 }, group, words);
      x += wide;
    }
    return items.length ? y + 18 : 6;
  }

  function marker(parent, x, y, { marker: shape = "o", color, hollow = false, size = 1 }) {
    const open = hollow || shape === "x";
    return node("path", { d: MARKERS[shape], transform: `translate(${x.toFixed(2)},${y.toFixed(2)}) scale(${size})`,
      fill: open ? (shape === "x" ? "none" : PAPER) : color, stroke: open ? color : PAPER,
      "stroke-width": open ? 1.7 : 0.8 }, parent);
  }

  function frame(svg, spec, box, x, y) {
    const { left, right, top, bottom } = box, grid = spec.heat ? "none" : LINE;
    for (const tick of x.ticks) {
      node("line", { x1: x.position(tick), x2: x.position(tick), y1: top, y2: bottom, stroke: grid, "stroke-width": 0.7 }, svg);
      node("line", { x1: x.position(tick), x2: x.position(tick), y1: bottom, y2: bottom + 4, stroke: SOFT }, svg);
      node("text", { x: x.position(tick), y: bottom + 18, "text-anchor": "middle", fill: INK, "font-size": 12.5 }, svg,
        label(spec.x, tick));
    }
    for (const tick of y.ticks) {
      node("line", { y1: y.position(tick), y2: y.position(tick), x1: left, x2: right, stroke: grid, "stroke-width": 0.7 }, svg);
      node("line", { y1: y.position(tick), y2: y.position(tick), x1: left - 4, x2: left, stroke: SOFT }, svg);
      node("text", { x: left - 7, y: y.position(tick) + 4.5, "text-anchor": "end", fill: INK, "font-size": 12.5 }, svg,
        label(spec.y, tick));
    }
    node("rect", { x: left, y: top, width: right - left, height: bottom - top, fill: "none", stroke: SOFT }, svg);
    node("text", { x: (left + right) / 2, y: bottom + 38, "text-anchor": "middle", fill: INK, "font-size": 13 }, svg, spec.x.label);
    node("text", { x: 0, y: 0, transform: `translate(14,${(top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle",
      fill: INK, "font-size": 13 }, svg, spec.y.label);
  }

  function content(svg, spec, box, x, y) {
    const clip = `clip-${++count}`, { left, right, top, bottom } = box;
    const shape = node("clipPath", { id: clip }, node("defs", {}, svg));
    node("rect", { x: left, y: top, width: right - left, height: bottom - top }, shape);
    const inner = node("g", { "clip-path": `url(#${clip})` }, svg);
    for (const rule of spec.rules || []) {
      const at = rule.x !== undefined ? x.position(rule.x) : y.position(rule.y);
      const ends = rule.x !== undefined ? { x1: at, x2: at, y1: top, y2: bottom } : { x1: left, x2: right, y1: at, y2: at };
      node("line", { ...ends, stroke: rule.color, "stroke-width": rule.width || 1.6, "stroke-dasharray": rule.dash || "" }, inner);
    }
    for (const { x: ax, y: ay, dx, dy } of spec.arrows || []) {
      const px = x.position(ax), py = y.position(ay), size = Math.hypot(dx, dy) || 1, u = 6 * dx / size, v = -6 * dy / size;
      node("path", { d: `M${px - u},${py - v}L${px + u},${py + v}m${-0.55 * u - 0.4 * v},${-0.55 * v + 0.4 * u}L${px + u},${py + v}`
        + `l${-0.55 * u + 0.4 * v},${-0.55 * v - 0.4 * u}`, stroke: SOFT, fill: "none", "stroke-width": 1 }, inner);
    }
    for (const line of spec.lines || []) {
      node("path", { d: path(line.x.map(x.position), line.y.map(y.position)), fill: "none", stroke: line.color,
        "stroke-width": line.width || 2, "stroke-dasharray": line.dash || "", "stroke-linejoin": "round" }, inner);
    }
    // points are not clipped: a marker on the edge stays whole
    const inside = (px, py) => px >= left - 1 && px <= right + 1 && py >= top - 1 && py <= bottom + 1;
    for (const series of spec.points || []) {
      series.x.forEach((value, i) => {
        const px = x.position(value), py = y.position(series.y[i]);
        if (!inside(px, py)) return;
        if (series.low) {
          const low = Math.min(bottom, y.position(Math.max(series.low[i], spec.y.log ? y.domain[0] : -Infinity)));
          const high = Math.max(top, y.position(series.high[i]));
          if (Math.abs(low - high) > 1) {
            node("path", { d: `M${px},${low}V${high}M${px - 3},${low}H${px + 3}M${px - 3},${high}H${px + 3}`, stroke: series.color,
              fill: "none", "stroke-width": 1.2 }, svg);
          }
        }
        marker(svg, px, py, series);
      });
    }
  }

  // The value under the pointer: the nearest vertex of any series within 40 pixels.
  function readout(svg, spec, box, x, y) {
    const group = node("g", { class: "readout", "pointer-events": "none" }, svg);
    svg.addEventListener("pointermove", (event) => {
      group.replaceChildren();
      const { left: ox, top: oy } = svg.getBoundingClientRect(), px = event.clientX - ox, py = event.clientY - oy;
      let best = null, closest = 40;
      for (const series of [...(spec.lines || []), ...(spec.points || [])]) {
        series.x.forEach((value, i) => {
          const sx = x.position(value), sy = y.position(series.y[i]), gap = Math.hypot(sx - px, sy - py);
          if (gap < closest && sx >= box.left && sx <= box.right && sy >= box.top && sy <= box.bottom) {
            closest = gap;
            const name = series.label || series.name;
            best = { sx, sy, words: `${name ? `${name}: ` : ""}${axes.text(value)}, ${axes.text(series.y[i])}` };
          }
        });
      }
      if (!best) return;
      const wide = width(best.words, 12.5) + 14, right = best.sx + 10 + wide > box.right;
      const bx = Math.max(box.left, right ? best.sx - wide - 10 : best.sx + 10), by = Math.max(box.top + 2, best.sy - 28);
      node("circle", { cx: best.sx, cy: best.sy, r: 4, fill: "none", stroke: INK, "stroke-width": 1.5 }, group);
      node("rect", { x: bx, y: by, width: wide, height: 22, rx: 4, fill: PAPER, stroke: SOFT }, group);
      node("text", { x: bx + 7, y: by + 15.5, fill: INK, "font-size": 12.5 }, group, best.words);
    });
    svg.addEventListener("pointerleave", () => group.replaceChildren());
  }

  // The movable point: drag it, or focus it and use the arrow keys; `move(x, y)` is told where it should be.
  function handle(svg, spec, box, x, y, holder) {
    const { x: hx, y: hy, label: words, color = tone("#D55E00"), move, step } = spec.handle, px = x.position(hx), py = y.position(hy);
    const group = node("g", { tabindex: 0, role: "slider", "aria-label": words, class: "handle",
      "aria-valuetext": `${axes.text(hx)}, ${axes.text(hy)}`, "aria-valuenow": hx, transform: `translate(${px},${py})` }, svg);
    node("circle", { r: 18, fill: "transparent" }, group);
    node("circle", { r: 15, class: "ring", fill: "none", stroke: "transparent", "stroke-width": 3 }, group);
    node("circle", { r: 8.5, fill: "none", stroke: PAPER, "stroke-width": 7 }, group);
    node("circle", { r: 8.5, fill: "none", stroke: color, "stroke-width": 4 }, group);
    group.addEventListener("keydown", (event) => {
      const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      if (way) { event.preventDefault(); step(...way); }
    });
    group.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      group.focus();
      holder.dragging = true;
      const follow = (e) => {
        const area = holder.querySelector("svg").getBoundingClientRect();
        move(x.invert(e.clientX - area.left), y.invert(e.clientY - area.top));
      };
      const stop = () => {
        window.removeEventListener("pointermove", follow);
        window.removeEventListener("pointerup", stop);
        setTimeout(() => { holder.dragging = false; }, 0); // the click that ends a drag comes first, and is none
      };
      window.addEventListener("pointermove", follow);
      window.addEventListener("pointerup", stop);
    });
  }

  // Draws `spec` into `holder`, at the holder's width.
  function draw(holder, given) {
    if (given.paint) { given.paint(holder); return; }
    const toned = (series) => series?.map((s) => ({ ...s, color: tone(s.color) }));
    const spec = { ...given, lines: toned(given.lines), points: toned(given.points), rules: toned(given.rules) };
    const focused = holder.contains(document.activeElement) && document.activeElement.classList.contains("handle");
    const total = Math.max(280, holder.clientWidth), svg = node("svg", { "font-family": FONT });
    // what is inside an image cannot be focused: a chart with a movable point is a group
    svg.setAttribute("role", spec.handle ? "group" : "img");
    svg.setAttribute("aria-label", `${spec.title}. Horizontal: ${spec.x.label}. Vertical: ${spec.y.label}.`);
    const indent = total < 420 ? 8 : 46, top = legend(svg, spec, total - indent - 8, indent);
    const marks = axes.scale(spec.y, [1, 0], 5).ticks.map((tick) => width(label(spec.y, tick), 12.5));
    const ends = axes.scale(spec.x, [0, 1], 5).ticks.slice(-1), last = width(ends.map((tick) => label(spec.x, tick)).join(""), 12.5) / 2;
    const left = 34 + Math.max(...marks, 16), right = total - Math.max(14, last + 2);
    const tall = spec.square ? Math.min(right - left, 460) : spec.height || 280;
    const box = { left, right: spec.square ? left + tall : right, top: top + 4, bottom: top + 4 + tall };
    const height = box.bottom + 46;
    const extent = { width: total, height, viewBox: `0 0 ${total} ${height}` };
    for (const [key, value] of Object.entries(extent)) svg.setAttribute(key, value);
    const x = axes.scale(spec.x, [box.left, box.right], Math.max(3, (box.right - box.left) / 75));
    const y = axes.scale(spec.y, [box.bottom, box.top], 5);
    if (spec.heat) {
      const area = { x: box.left, y: box.top, width: box.right - box.left, height: tall, preserveAspectRatio: "none" };
      node("image", { ...area, href: ((spec.heat.images ||= {})[dark()] ||= heatImage(spec.heat)) }, svg);
    }
    frame(svg, spec, box, x, y);
    content(svg, spec, box, x, y);
    if (spec.empty && !spec.points.some((series) => series.kind !== "theory" && series.x.length)) {
      const middle = { x: (box.left + box.right) / 2, y: box.top + 20, "text-anchor": "middle" };
      node("text", { ...middle, fill: SOFT, "font-size": 12.5 }, svg, spec.empty);
    }
    readout(svg, spec, box, x, y);
    if (spec.click) {
      svg.style.cursor = "crosshair";
      svg.addEventListener("click", (event) => {
        const area = svg.getBoundingClientRect(), px = event.clientX - area.left, py = event.clientY - area.top;
        if (holder.dragging) return;
        if (px >= box.left && px <= box.right && py >= box.top && py <= box.bottom) spec.click(x.invert(px), y.invert(py));
      });
    }
    if (spec.handle) handle(svg, spec, box, x, y, holder);
    holder.replaceChildren(svg);
    if (focused) holder.querySelector(".handle")?.focus();
  }

  const blue = (t) => `rgb(${shade(t)})`;

  return { draw, node, blue, INK, SOFT, FONT };
})(attnlab.axes);
