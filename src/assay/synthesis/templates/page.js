// Adds to a page that reads without it: a line of the map tells what it stands for, and links open what they lead to.
(() => {
  const map = document.querySelector(".relation-map");
  const tip = document.getElementById("pointed");
  const reveal = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let each = target; each; each = each.parentElement) if (each instanceof HTMLDetailsElement) each.open = true;
    if (target) target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  addEventListener("beforeprint", () => document.querySelectorAll("details.group").forEach((each) => (each.open = true)));
  reveal();
  if (!map || !tip) return;
  const chart = map.parentElement;
  if (chart) chart.scrollLeft = (chart.scrollWidth - chart.clientWidth) / 2;
  for (const title of map.querySelectorAll("title")) {
    title.parentElement?.setAttribute("aria-label", title.textContent);
    title.remove();
  }
  const hide = () => {
    tip.hidden = true;
    map.classList.remove("picking");
    map.querySelectorAll(".picked").forEach((each) => each.classList.remove("picked"));
  };
  const show = (/** @type {Element} */ line, /** @type {number} */ x, /** @type {number} */ y) => {
    const told = document.querySelector(line.getAttribute("href") ?? "");
    if (!told) return;
    tip.className = told.className;
    tip.replaceChildren(...told.cloneNode(true).childNodes);
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(8, Math.min(x + 14, innerWidth - width - 8))}px`;
    tip.style.top = `${y + height + 22 < innerHeight ? y + 14 : Math.max(8, y - height - 14)}px`;
  };
  const enter = (/** @type {any} */ event) => {
    const node = event.target.closest("a.node");
    const line = event.target.closest("a.edge");
    hide();
    if (node) {
      map.classList.add("picking");
      map.querySelectorAll(`a.edge[data-ends~="${node.dataset.doc}"]`).forEach((each) => each.classList.add("picked"));
    } else if (line) {
      const path = line.querySelector(".line");
      const middle = path.getPointAtLength(path.getTotalLength() / 2).matrixTransform(path.getScreenCTM());
      const pointed = event.type === "mouseover";
      show(line, pointed ? event.clientX : middle.x, pointed ? event.clientY : middle.y);
    }
  };
  map.addEventListener("mouseover", enter);
  map.addEventListener("focusin", enter);
  map.addEventListener("mouseleave", hide);
  map.addEventListener("focusout", hide);
  addEventListener("keydown", (event) => event.key === "Escape" && hide());
})();
