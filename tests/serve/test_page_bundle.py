"""The page is sent in few files, compressed, under names made from their content; long JSON is compressed, streams are not."""

from __future__ import annotations

import gzip
import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from serving import Served

from assay.serve.page_bundle import INDEX, Page, PageFile, bundled, wrapped
from assay.serve.routes.system import WEB

Serve = Callable[..., AbstractContextManager[Served]]

GZIP = {"Accept-Encoding": "gzip"}
PLAIN = {"Accept-Encoding": "identity"}


def text_of(files: Mapping[str, PageFile], stem: str) -> str:
    (found,) = [file for name, file in files.items() if name.startswith(f"{stem}-")]
    return found.content.decode()


def test_every_module_and_style_sheet_is_in_one_file_once():
    files = bundled(WEB)
    scripts = text_of(files, "app") + text_of(files, "screens")
    modules = {path.relative_to(WEB).as_posix() for path in WEB.rglob("*.js")} - {"theme.js"}
    defined = re.findall(r'^\$modules\["([^"]+)"\] = ', scripts, re.M)
    assert sorted(defined) == sorted(modules)
    for sheet in WEB.rglob("*.css"):
        assert sheet.read_text() in text_of(files, "style")


def test_a_module_comes_after_all_that_it_imports():
    for script in ("app", "screens"):
        there: list[str] = []
        for line in text_of(bundled(WEB), script).splitlines():
            if made := re.match(r'\$modules\["([^"]+)"\] = ', line):
                there.append(made[1])
            elif script == "app" and (needed := re.match(r'const .* = \$modules\["([^"]+)"\];', line)):
                assert needed[1] in there[:-1], line


@pytest.mark.parametrize(
    "line", ["export default 1;", 'import thing from "./x.js";', "export { one };", 'export * from "./x.js";']
)
def test_what_cannot_be_put_together_is_an_error_that_names_the_file(line: str):
    with pytest.raises(ValueError, match=r"screens/odd\.js: "):
        wrapped("screens/odd.js", line + "\n")


def test_modules_that_import_each_other_are_an_error(tmp_path: Path):
    web = shutil.copytree(WEB, tmp_path / "web")
    script = web / "lib" / "dom.js"
    script.write_text('import { get } from "./api.js";\n' + script.read_text())
    (web / "lib" / "api.js").write_text('import { el } from "./dom.js";\n' + (web / "lib" / "api.js").read_text())
    with pytest.raises(ValueError, match="import each other"):
        bundled(web)


def test_an_edited_module_is_sent_after_a_reload_under_another_name(tmp_path: Path):
    web = shutil.copytree(WEB, tmp_path / "web")
    page = Page(web)
    before = page.files()
    assert page.files() is before
    (web / "screens" / "health.js").write_text((web / "screens" / "health.js").read_text() + "// another word\n")
    after = page.files()
    changed = {name.rpartition("-")[0] for name in set(after) - set(before)}
    assert changed == {"screens", "app"}, "the frame names the screens"
    assert after[INDEX] != before[INDEX]


def test_what_the_index_names_is_kept_for_ever_and_the_index_is_asked_about(serve: Serve):
    with serve() as at, at.client() as client:
        index = client.get("/", headers=GZIP)
        assert (index.headers["cache-control"], index.headers["content-encoding"]) == ("no-cache", "gzip")
        again = client.get("/", headers={"If-None-Match": index.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        named = re.findall(r'"(/static/[^"]+)"', index.text)
        assert len(named) == 4
        for path in named:
            sent, plain = client.get(path, headers=GZIP), client.get(path, headers=PLAIN)
            assert sent.headers["content-encoding"] == "gzip" and "content-encoding" not in plain.headers
            assert "immutable" in sent.headers["cache-control"] and sent.headers["vary"] == "Accept-Encoding"
            assert sent.content == plain.content
            assert "script-src 'self';" in sent.headers["content-security-policy"]
        assert client.get("/static/app-0123456789abcdef.js").status_code == 404


def test_long_json_is_compressed_and_a_stream_never(serve: Serve):
    with serve() as at, at.client() as client:
        document = client.get("/openapi.json", headers=GZIP)
        assert document.headers["content-encoding"] == "gzip" and document.json()["openapi"]
        assert "content-encoding" not in client.get("/openapi.json", headers=PLAIN).headers
        assert "content-encoding" not in client.get("/health", headers=GZIP).headers
        run = client.post("/api/ask", json={"question": "How many litres does the kettle hold?"}).json()["id"]
        assert "content-encoding" not in client.get(f"/api/runs/{run}/events", headers=GZIP).headers
        assert client.get(f"/api/runs/{run}", headers=GZIP).headers["content-encoding"] == "gzip"


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_page_from_elsewhere_cannot_learn_from_lengths(serve: Serve, site: str):
    with serve() as at, at.client() as client:
        reply = client.get("/openapi.json", headers=GZIP | {"Sec-Fetch-Site": site})
        assert "content-encoding" not in reply.headers


def test_the_first_screen_is_small_as_it_is_sent():
    page = Page(WEB)
    files = page.files()
    sent = sum(len(page.zipped(file)) for name, file in files.items() if not name.startswith("screens-"))
    assert sent < 100_000
    assert gzip.decompress(page.zipped(files[INDEX])) == files[INDEX].content
