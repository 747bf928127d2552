// What a person drops or chooses, as files with their paths: folders are walked to the bottom.

const LITTER = new Set(["thumbs.db", "desktop.ini"]);

/** Whether a drag carries files, and not a piece of text or a link. */
export function carriesFiles(/** @type {DragEvent} */ event) {
  return [...(event.dataTransfer?.types ?? [])].includes("Files");
}

/** The files of a drop. The entries have to be taken while the event lasts; they are walked afterwards. */
export function dropped(/** @type {DragEvent} */ event) {
  const entries = [];
  const loose = /** @type {File[]} */ ([]);
  for (const item of event.dataTransfer?.items ?? []) {
    if (item.kind !== "file") continue;
    const entry = item.webkitGetAsEntry?.();
    const file = entry ? null : item.getAsFile();
    if (entry) entries.push(entry);
    else if (file) loose.push(file);
  }
  return walked(entries).then((found) => [...found, ...selectedFiles(loose)]);
}

/** The files of an `<input type=file>`, with the folder's path where a folder was chosen. */
export function selectedFiles(/** @type {Iterable<File>} */ files) {
  return [...files]
    .map((file) => ({ file, path: file.webkitRelativePath || file.name }))
    .filter(({ path }) => !path.split("/").some(litter));
}

async function walked(/** @type {FileSystemEntry[]} */ entries) {
  /** @type {Chosen[]} */
  const found = [];
  const waiting = [...entries];
  for (const entry of waiting) {
    if (litter(entry.name)) continue;
    if (entry.isDirectory) waiting.push(...(await inside(/** @type {FileSystemDirectoryEntry} */ (entry))));
    else {
      const own = /** @type {FileSystemFileEntry} */ (entry);
      const file = await new Promise((resolve) => own.file(resolve, () => resolve(null)));
      if (file) found.push({ file, path: entry.fullPath.replace(/^\/+/, "") });
    }
  }
  return found;
}

/** All entries of a folder: a browser hands them out a hundred at a time. */
async function inside(/** @type {FileSystemDirectoryEntry} */ folder) {
  const reader = folder.createReader();
  const all = [];
  for (;;) {
    const some = await new Promise((resolve) => reader.readEntries(resolve, () => resolve([])));
    if (!some.length) return all;
    all.push(...some);
  }
}

/** What systems leave in folders, and nobody means to add. */
function litter(/** @type {string} */ name) {
  return name.startsWith(".") || name.startsWith("~$") || name === "__MACOSX" || LITTER.has(name.toLowerCase());
}
