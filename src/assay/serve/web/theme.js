// Light or dark as it was chosen last, set before anything is drawn. A classic script, so that nothing flashes.
try {
  const chosen = localStorage.getItem("assay-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  if (localStorage.getItem("assay-side") === "closed") document.documentElement.dataset.side = "closed";
} catch {
  // storage may be forbidden; the system's own preference then holds
}
