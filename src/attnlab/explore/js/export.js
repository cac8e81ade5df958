// What a reader takes away: a chart as PNG with its title, its numbers as CSV.
"use strict";

attnlab.exports = ((plot) => {
  function save(name, blob) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  // The colours of the style sheet as they are now: a picture on its own has no style sheet.
  function coloured(text) {
    const style = getComputedStyle(document.documentElement);
    return text.replace(/var\((--\w+)\)/g, (_, name) => style.getPropertyValue(name).trim());
  }

  // The chart at twice its size, under its title and the setting it shows.
  async function png(holder, spec, setting) {
    const svg = holder.querySelector("svg").cloneNode(true);
    svg.querySelectorAll(".readout, .ring").forEach((part) => part.remove());
    const wide = Number(svg.getAttribute("width")), tall = Number(svg.getAttribute("height")) + 52;
    svg.setAttribute("viewBox", `0 -52 ${wide} ${tall}`);
    svg.setAttribute("height", tall);
    plot.node("text", { x: 14, y: -30, fill: plot.INK, "font-size": 16, "font-weight": 600 }, svg, spec.title);
    plot.node("text", { x: 14, y: -11, fill: plot.INK, "font-size": 12 }, svg, setting);
    const image = new Image();
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(coloured(new XMLSerializer().serializeToString(svg)));
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = 2 * wide;
    canvas.height = 2 * tall;
    const context = canvas.getContext("2d");
    context.fillStyle = coloured("var(--paper)");
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(image, 0, 0, canvas.width, canvas.height);
    return new Promise((done) => canvas.toBlob(done, "image/png"));
  }

  // One row for each vertex and point: series, kind, x, y and the ends of the error bar.
  function csv(spec) {
    if (spec.table) return spec.table.map((row) => row.join(",")).join("\n") + "\n";
    const quote = (words) => `"${String(words).replaceAll('"', '""')}"`;
    const rows = [["series", "kind", quote(spec.x.label), quote(spec.y.label), "low", "high"]];
    for (const [kind, group] of [["theory", spec.lines], ["simulation", spec.points]]) {
      for (const series of group || []) {
        series.x.forEach((x, i) => {
          rows.push([quote(series.label || series.name || ""), series.kind || kind, x, series.y[i],
            series.low ? series.low[i] : "", series.high ? series.high[i] : ""]);
        });
      }
    }
    return rows.map((row) => row.join(",")).join("\n") + "\n";
  }

  return { save, png, csv };
})(attnlab.plot);
