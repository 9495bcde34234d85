// SPDX-License-Identifier: Apache-2.0
// Without this script the page is complete, and shows what was there when it was loaded.
"use strict";
(() => {
  const main = document.getElementById("main");
  const lost = document.getElementById("lost");
  if (!document.body.dataset.live) return;
  let stream = null;

  // same reports whether an old node can become a new one.
  const same = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName && (a.id || "") === (b.id || "");

  // morph makes an element like another one, and keeps what is equal: focus, selection and scrolling stay.
  function morph(from, to) {
    for (const { name } of [...from.attributes]) if (!to.hasAttribute(name)) from.removeAttribute(name);
    for (const { name, value } of to.attributes) if (from.getAttribute(name) !== value) from.setAttribute(name, value);
    fill(from, to);
  }

  // fill does that with what is in an element.
  function fill(from, to) {
    const byId = new Map([...from.children].filter((c) => c.id).map((c) => [c.id, c]));
    let at = from.firstChild;
    for (const next of [...to.childNodes]) {
      const known = next.id && byId.get(next.id);
      if (known && known !== at) from.insertBefore(known, at);
      const old = known || at;
      if (old && same(old, next)) {
        if (old.nodeType === Node.ELEMENT_NODE) morph(old, next);
        else if (old.nodeValue !== next.nodeValue) old.nodeValue = next.nodeValue;
        at = old.nextSibling;
      } else {
        from.insertBefore(document.importNode(next, true), at);
      }
    }
    while (at) {
      const after = at.nextSibling;
      at.remove();
      at = after;
    }
  }

  function open() {
    if (stream) return;
    stream = new EventSource(document.body.dataset.live);
    stream.onopen = () => { lost.hidden = true; };
    stream.onerror = () => {
      lost.hidden = false;
      if (stream.readyState === EventSource.CLOSED) {
        close();
        setTimeout(look, 5000);
      }
    };
    stream.addEventListener("main", (e) => {
      const page = new DOMParser().parseFromString("<main>" + JSON.parse(e.data) + "</main>", "text/html");
      fill(main, page.querySelector("main"));
    });
  }

  function close() {
    if (stream) stream.close();
    stream = null;
  }

  // Whoever does not look needs nothing.
  const look = () => (document.hidden ? close() : open());
  document.addEventListener("visibilitychange", look);
  look();
})();
