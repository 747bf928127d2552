"""The page as it is sent: its modules in two scripts, its style sheets in one, compressed, under names made from their content.

It is made in memory from the files in `web/`, when they are first asked for and again when one has changed. A module becomes
a function that returns what it exports, so modules use named imports and exports alone, and never import in a circle."""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

INDEX = "index.html"
FRAME, FIRST = "app.js", "screens/ask.js"  # what every visit needs; the other screens come with the first of them

IMPORT = re.compile(r'^import (?:\{(?P<names>[^}]*)\}|\* as (?P<whole>\w+)) from "(?P<path>\.[^"]+)";\n', re.M)
LATE = re.compile(r"\bimport\((?:\"(?P<path>\.[^\"]+)\")?")
EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const) (?P<name>\w+))", re.M)
UNKNOWN = re.compile(r"^(?:import|export)\b.*", re.M)
SHEETS = re.compile(r'(?:<link rel="stylesheet" href="/static/[^"]+">\n)+')
ADDRESS = re.compile(r'"/static/([^"]+)"')

START = """const $modules = {};
const $load = async (from, name) => {
  const path = new URL(name, `http://page/${from}`).pathname.slice(1);
  if (!(path in $modules)) {
    const { screens } = await import("./SCREENS").catch(() => {
      throw new Error("This screen could not be fetched. Load the page again.");
    });
    if (!(path in $modules)) screens($modules, $load);
  }
  return $modules[path];
};
"""


@dataclass(frozen=True)
class PageFile:
    """A file as it is sent."""

    content: bytes
    type: str

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.content).hexdigest()[:16]


class Page:
    """The files of the page, made anew when one of those it is made from has changed."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._made_from, self._lock = folder, "", Lock()
        self._files: Mapping[str, PageFile] = {}
        self._zipped: dict[str, bytes] = {}

    def files(self) -> Mapping[str, PageFile]:
        """By name; `index.html` is the only one without a digest in it."""
        with self._lock:
            now = _state(self._folder)
            if now != self._made_from:
                self._files, self._made_from, self._zipped = bundled(self._folder), now, {}
            return self._files

    def zipped(self, file: PageFile) -> bytes:
        with self._lock:
            if file.digest not in self._zipped:
                self._zipped[file.digest] = gzip.compress(file.content, 9, mtime=0)
            return self._zipped[file.digest]


def _state(folder: Path) -> str:
    """Another when a file is added, removed or written."""
    found = (path.stat() for path in sorted(folder.rglob("*.*")))
    return ",".join(f"{each.st_ino}:{each.st_mtime_ns}:{each.st_size}" for each in found)


def bundled(folder: Path) -> dict[str, PageFile]:
    """What is sent instead of the files of the page."""
    texts = {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in folder.rglob("*.*")}
    first = in_order(texts, [FIRST, FRAME])
    others = in_order(texts, sorted(name for name in texts if name.startswith("screens/")))
    files: dict[str, PageFile] = {}

    def put(name: str, text: str) -> str:
        """The name under which this is sent: the same for ever means the same content for ever."""
        file = PageFile(text.encode(), mimetypes.guess_type(name)[0] or "text/plain")
        stem, ending = posixpath.splitext(posixpath.basename(name))
        sent = f"{stem}-{file.digest}{ending}"
        files[sent] = file
        return sent

    rest = "".join(wrapped(path, texts[path]) for path in others if path not in first)
    screens = put("screens.js", f"export function screens($modules, $load) {{\n{rest}}}\n")
    frame = START.replace("SCREENS", screens) + "".join(wrapped(path, texts[path]) for path in first)
    sent = {FRAME: put(FRAME, frame)}

    def sheet(found: re.Match[str]) -> str:
        together = "".join(texts[path] for path in ADDRESS.findall(found[0]))
        return f'<link rel="stylesheet" href="/static/{put("style.css", together)}">\n'

    def address(found: re.Match[str]) -> str:
        name = found[1]
        return f'"/static/{name if name in files else sent.get(name) or put(name, texts[name])}"'

    index = ADDRESS.sub(address, SHEETS.sub(sheet, texts[INDEX]))
    return files | {INDEX: PageFile(index.encode(), "text/html; charset=utf-8")}


def in_order(texts: Mapping[str, str], starts: Iterable[str]) -> list[str]:
    """These modules and all that they name, each after what it imports; what is imported late comes last."""
    found: list[str] = []
    waiting = list(starts)

    def visit(path: str, above: tuple[str, ...] = ()) -> None:
        if path in above:
            raise ValueError(f"modules import each other: {' > '.join([*above, path])}")
        if path in found:
            return
        for needed in imported(path, IMPORT, texts[path]):
            visit(needed, (*above, path))
        found.append(path)
        waiting.extend(imported(path, LATE, texts[path]))

    for path in waiting:  # it grows meanwhile
        visit(path)
    return found


def imported(path: str, how: re.Pattern[str], text: str) -> Iterator[str]:
    for each in how.finditer(text):
        if each["path"]:
            yield posixpath.normpath(posixpath.join(posixpath.dirname(path), each["path"]))


def wrapped(path: str, text: str) -> str:
    """A module as a function that is called at once and returns what it exports."""

    def bound(each: re.Match[str]) -> str:
        names = each["whole"] or "{" + each["names"].replace(" as ", ": ") + "}"
        (needed,) = imported(path, IMPORT, each[0])
        return f'const {names} = $modules["{needed}"];\n'

    exported = [each["name"] for each in EXPORT.finditer(text)]
    body = EXPORT.sub("", IMPORT.sub(bound, text))
    if unknown := UNKNOWN.search(body):
        raise ValueError(f"{path}: {unknown[0]}: only named imports and exports can be put together")
    body = LATE.sub(lambda each: f'$load("{path}", ' + (f'"{each["path"]}"' if each["path"] else ""), body)
    return f'$modules["{path}"] = (() => {{\n{body}return {{ {", ".join(exported)} }};\n}})();\n'
