// What a page tells of itself from inside a frame; the answer is left in the document around the frame.
const channel = value => (value /= 255) <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
const contrast = (a, b) => {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
};
const colour = text => text.match(/[\d.]+/g).map(Number);
const ground = element => {
  for (let e = element; e; e = e.parentElement) {
    const found = colour(getComputedStyle(e).backgroundColor);
    if (found.length < 4 || found[3] === 1) return found.slice(0, 3);
  }
  return [255, 255, 255];
};
const holdsText = element => [...element.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());

const visible = [...document.body.querySelectorAll("*")].filter(e => e.getClientRects().length);
const written = visible.filter(e => holdsText(e) && !["SCRIPT", "STYLE"].includes(e.tagName));
const contrasts = written.map(e => [contrast(colour(getComputedStyle(e).color), ground(e)), e.outerHTML.slice(0, 80)]);
const scrolling = visible.filter(e => e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX === "auto");
const focused = [...document.querySelectorAll('a, [tabindex="0"]')].map(e => {
  e.focus();
  const style = getComputedStyle(e);
  return [document.activeElement === e, style.outlineStyle, parseFloat(style.outlineWidth)];
});

const answer = parent.document.createElement("pre");
answer.className = "probe";
answer.textContent = JSON.stringify({
  width: innerWidth,
  page: document.documentElement.scrollWidth,
  worst: contrasts.sort((a, b) => a[0] - b[0])[0],
  scrolls: scrolling.map(e => [e.tabIndex, e.getAttribute("aria-label")]),
  focus: focused,
  broken: [...document.images].filter(i => !i.complete || !i.naturalWidth).length,
});
parent.document.body.append(answer);
