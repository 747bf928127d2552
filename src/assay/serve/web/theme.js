// Light or dark as it was chosen last, set before anything is drawn. A classic script, so that nothing flashes.
try {
  const stored = localStorage.getItem("assay-theme");
  if (stored === "light" || stored === "dark") document.documentElement.dataset.theme = stored;
  if (localStorage.getItem("assay-side") === "closed") document.documentElement.dataset.side = "closed";
} catch {
  // storage may be forbidden; the system's own preference then holds
}
