"use strict";
// Filter by system, by state of the claims and by words; without scripts everything is shown.
(() => {
  const find = (selector) => Array.from(document.querySelectorAll(selector));
  const system = document.getElementById("by-system");
  const state = document.getElementById("by-state");
  const words = document.getElementById("by-words");
  // A picture is stored once; its small copy at the top takes the same data.
  for (const copy of find("img[data-copy]")) copy.src = document.getElementById(`picture-${copy.dataset.copy}`).src;

  function apply() {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const figure of find(".figure")) {
      const text = figure.textContent.toLowerCase();
      const shown = (!system.value || figure.dataset.system === system.value)
        && (!state.value || figure.dataset.states.split(" ").includes(state.value))
        && wanted.every((word) => text.includes(word));
      figure.classList.toggle("hidden", !shown);
    }
    for (const chapter of find(".chapter")) {
      chapter.classList.toggle("hidden", !chapter.querySelector(".figure:not(.hidden)"));
    }
    const left = find(".figure:not(.hidden)").length;
    document.getElementById("shown").textContent = left ? "" : "nothing matches";
  }

  for (const control of [system, state, words]) {
    for (const event of ["input", "change"]) control.addEventListener(event, apply);
  }
  // A link to something that the filter hides shows everything again.
  window.addEventListener("hashchange", () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target && target.closest(".hidden")) {
      system.value = state.value = words.value = "";
      apply();
      target.scrollIntoView();
    }
  });
})();
