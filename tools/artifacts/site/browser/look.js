// SPDX-License-Identifier: Apache-2.0

// What is there to see of the page? It returns what pages_test.go checks.
(() => {
  const leastContrast = 4.5;

  const rgba = (color) => {
    const n = color.match(/[\d.]+/g).map(Number);
    if (!color.startsWith("rgb")) throw new Error(`cannot read the colour ${color}`);
    return { r: n[0], g: n[1], b: n[2], a: n[3] ?? 1 };
  };
  const over = (top, below) => ({
    r: top.r * top.a + below.r * (1 - top.a), g: top.g * top.a + below.g * (1 - top.a), b: top.b * top.a + below.b * (1 - top.a), a: 1,
  });
  const luminance = ({ r, g, b }) => {
    const [x, y, z] = [r, g, b].map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const contrast = (a, b) => {
    const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (light + 0.05) / (dark + 0.05);
  };
  // The colour behind an element: those of all that it is in, one over the other.
  const behind = (element) => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) {
      const layer = rgba(getComputedStyle(e).backgroundColor);
      layers.push(layer);
      if (layer.a === 1) break;
    }
    return layers.reduceRight((below, top) => over(top, below), { r: 255, g: 255, b: 255, a: 1 });
  };
  const hasText = (element) => [...element.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.data.trim());
  const visible = (element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true });

  const faint = new Set();
  let texts = 0;
  const judge = (element, style, what) => {
    texts++;
    const paper = behind(element);
    const got = contrast(over(rgba(style.color), paper), paper);
    if (got < leastContrast) faint.add(`${what} has a contrast of ${got.toFixed(2)}`);
  };
  for (const element of document.body.querySelectorAll("*")) {
    if (!visible(element)) continue;
    const name = element.localName + (element.className ? "." + element.className : "");
    if (hasText(element)) judge(element, getComputedStyle(element), name);
    if (element.placeholder) judge(element, getComputedStyle(element, "::placeholder"), name + "::placeholder");
  }

  const page = document.scrollingElement;
  const wider = page.scrollWidth <= window.innerWidth ? [] : [...document.body.querySelectorAll("*")]
    .filter((e) => e.getBoundingClientRect().right > window.innerWidth && !e.parentElement.closest(".box, pre"))
    .map((e) => `${e.localName} ${e.textContent.trim().slice(0, 60)}`);
  if (page.scrollWidth > window.innerWidth && !wider.length) wider.push(`the page is ${page.scrollWidth} wide`);

  return {
    links: [...document.links].map((a) => a.href),
    ids: [...document.querySelectorAll("[id]")].map((e) => e.id),
    wider, faint: [...faint], texts,
  };
})()
