// SPDX-License-Identifier: Apache-2.0

// It runs before the page is drawn, so that the page does not flash in the other colours.
"use strict";

const theme = {
  key: "mlbatch-colours",
  system: window.matchMedia("(prefers-color-scheme: dark)"),

  // A browser may refuse to remember anything.
  remembered() {
    try { return localStorage.getItem(this.key); } catch { return null; }
  },

  remember(colours) {
    try {
      if (colours) localStorage.setItem(this.key, colours); else localStorage.removeItem(this.key);
    } catch { /* until the next page */ }
  },

  isDark() {
    const chosen = document.documentElement.dataset.colours;
    return chosen ? chosen === "dark" : this.system.matches;
  },

  // What the system has is not remembered: the page goes on following the system.
  choose(dark) {
    const chosen = dark === this.system.matches ? "" : dark ? "dark" : "light";
    this.remember(chosen);
    this.apply(chosen);
  },

  apply(chosen) {
    if (chosen) document.documentElement.dataset.colours = chosen;
    else delete document.documentElement.dataset.colours;
  },
};

theme.apply(theme.remembered());
