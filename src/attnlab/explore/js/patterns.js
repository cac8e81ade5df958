// Attention weights as rows of small heat maps: one row for each layer, one column for each head.
"use strict";

attnlab.patterns = (({ node, blue, INK, SOFT, FONT }, { text }) => {
  const MARGIN = 26, GAP = 22, ROW = 34, LARGEST = 168;

  function matrix(svg, weights, left, top, size) {
    const side = size / weights.length;
    weights.forEach((line, a) => line.forEach((weight, b) => {
      const place = { x: left + b * side, y: top + a * side, width: side + 0.3, height: side + 0.3, fill: blue(weight) };
      node("title", {}, node("rect", place, svg), `token ${a + 1} to token ${b + 1}: ${text(weight, 3)}`);
    }));
    node("rect", { x: left, y: top, width: size, height: size, fill: "none", stroke: SOFT }, svg);
  }

  // `rows` are pairs of a name and the weights [head][query][key].
  function draw(holder, rows) {
    const heads = rows[0][1].length, room = Math.max(280, holder.clientWidth) - MARGIN - 4;
    const size = Math.min(LARGEST, (room - GAP * (heads - 1)) / heads);
    const wide = MARGIN + heads * (size + GAP) - GAP + 2, tall = rows.length * (size + ROW) + 46;
    const svg = node("svg", { width: wide, height: tall, viewBox: `0 0 ${wide} ${tall}`, role: "img", "font-family": FONT,
      "aria-label": `Attention weights of every head: ${rows.map(([name]) => name).join("; ")}` });
    rows.forEach(([name, weights], r) => {
      const top = r * (size + ROW) + 24, middle = `translate(14,${top + size / 2}) rotate(-90)`;
      node("text", { x: MARGIN, y: top - 8, fill: INK, "font-size": 13, "font-weight": 600 }, svg, name);
      node("text", { transform: middle, "text-anchor": "middle", fill: INK, "font-size": 12 }, svg, "query token");
      weights.forEach((head, h) => matrix(svg, head, MARGIN + h * (size + GAP), top, size));
    });
    for (let h = 0; h < heads; h++) {
      const x = MARGIN + h * (size + GAP) + size / 2;
      node("text", { x, y: tall - 39, "text-anchor": "middle", fill: INK, "font-size": 13 }, svg, `head ${h + 1}`);
    }
    node("text", { x: MARGIN, y: tall - 8, fill: INK, "font-size": 12 }, svg, "key token; the bluer, the larger the weight (0 to 1)");
    holder.replaceChildren(svg);
  }

  // The same numbers as a table.
  function table(rows) {
    const lines = [["layer", "head", "query", "key", "weight"]];
    for (const [name, heads] of rows) {
      heads.forEach((w, h) => w.forEach((line, a) => line.forEach((v, b) => lines.push([`"${name}"`, h + 1, a + 1, b + 1, v]))));
    }
    return lines;
  }

  return { draw, table };
})(attnlab.plot, attnlab.axes);
