// Rows of the data as series of a chart.
"use strict";

attnlab.series = (() => {
  // Two numbers of a setting that were written by different hands.
  const same = (a, b) => Math.abs(a - b) < 1e-9;
  const unique = (values) => [...new Set(values)];
  const closest = (values, wanted, distance = (a, b) => Math.abs(a - b)) => values.reduce(
    (best, value) => (distance(value, wanted) < distance(best, wanted) ? value : best),
  );
  const inRatio = (a, b) => Math.abs(Math.log(a / b));

  // Means with one standard error to either side, along the parameter `key`.
  function means(rows, key, look) {
    return {
      ...look,
      x: rows.map((row) => row[key]),
      y: rows.map((row) => row.mean),
      low: rows.map((row) => row.mean - row.sem),
      high: rows.map((row) => row.mean + row.sem),
    };
  }

  // Shares with their exact intervals; `place` says where a row stands.
  function shares(rows, place, look) {
    return {
      ...look,
      x: rows.map(place),
      y: rows.map((row) => row.share),
      low: rows.map((row) => row.low),
      high: rows.map((row) => row.high),
    };
  }

  // The point of the chosen setting on a line.
  const here = (x, y, label = "this setting") => ({ x: [x], y: [y], color: "#D55E00", size: 1.5, label, kind: "theory" });

  return { same, unique, closest, inRatio, means, shares, here };
})();
