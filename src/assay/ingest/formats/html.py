"""Web pages: the content that a reader sees, with headings as sections.

Hidden text is removed from the tree first; then the main content is selected. The same code converts both the whole page and
the selection to text.
"""

from __future__ import annotations

import email
import json
import logging
import re
from dataclasses import replace
from html import escape
from typing import Any

from lxml.etree import tostring
from selectolax.lexbor import LexborHTMLParser, LexborNode

from assay.core.printable import tidy_whitespace
from assay.ingest.figures import find_captions
from assay.ingest.formats.html_hidden import Pruned, remove_hidden
from assay.ingest.formats.html_text import BLANKS, limit_depth, remove_permalinks, write_tree
from assay.ingest.formats.text import TextBuilder, decode
from assay.ingest.metadata.file_fields import parse_authors, parse_date, plausible_title
from assay.ingest.parsed import FileLimits, Parsed

_CHARSET = re.compile(
    rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w.:-]+)|<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]+)""", re.I
)
_WEB_ARCHIVE = re.compile(rb"(?:[\w-]+:[^\n]*\n(?:[ \t][^\n]*\n)*)*?Content-Type:\s*multipart/related", re.I)
_DEEP = 150  # levels; trafilatura recurses once per level
_SHORT = 1500  # characters; a page this short has little beside its content
_LONG = 2_000_000  # characters; no article is this long, and the selection would be slow
_WHOLE = 0.95  # of the visible text
_SECTIONS = 6  # headings of a handbook: an element that holds it is taken whole, lists and tables included
_MOSTLY = 0.8  # of the text outside menus
_UNSAID = 5  # hidden words; nearly every page has a few for screen readers


def parse(data: bytes, name: str, limits: FileLimits) -> Parsed:
    """The main content of a page, or all visible text if no main content stands out."""
    if _WEB_ARCHIVE.match(data):
        data = _page_of_archive(data)
    return parse_page(decode_page(data), limits)


def _page_of_archive(data: bytes) -> bytes:
    """The page in a web archive (MHTML), which has the form of an e-mail; empty if there is none."""
    parts = (part for part in email.message_from_bytes(data).walk() if part.get_content_type() == "text/html")
    payload = next((part.get_payload(decode=True) for part in parts), b"")
    return payload if isinstance(payload, bytes) else b""


def decode_page(data: bytes) -> str:
    match = _CHARSET.search(data[:4096])
    return decode(data, (match[1] or match[2]).decode("ascii", "replace") if match else None)


def parse_page(source: str, limits: FileLimits) -> Parsed:
    tree = LexborHTMLParser(limit_depth(source))
    remove_permalinks(tree)
    facts = _facts(tree)
    pruned = remove_hidden(tree)
    captions = _captions(tree)
    out = _written(tree.body, limits)
    if _SHORT < out.length < _LONG and pruned.depth <= _DEEP and has_surroundings(tree, out.length):
        out = _main(tree, out)
    _report(pruned, out)
    parsed = out.parsed(
        **facts,
        empty="The page shows no text of its own; it is filled in by scripts: save it from a browser, or print it to PDF.",
    )
    return replace(parsed, figures=find_captions(parsed.text, captions))


def _captions(tree: LexborHTMLParser) -> list[str]:
    """The captions of pictures. Where a picture has none, what it says in place of itself becomes one."""
    found: list[str] = []
    for figure in tree.css("figure"):
        picture, caption = figure.css_first("img, svg, picture, canvas"), figure.css_first("figcaption")
        if picture is None or figure.css_first("table, figure figure") is not None:
            continue
        if caption is None and (said := tidy_whitespace(picture.attributes.get("alt") or "")):
            picture.insert_after(said)
            found.append(said)
        elif caption is not None:
            found.append(tidy_whitespace(BLANKS.sub(" ", caption.text())))
    return found


def write_visible(source: str, out: TextBuilder, below: int = 0) -> None:
    """Append all visible text of this HTML: for a book chapter or a message, where all of it is content."""
    tree = LexborHTMLParser(limit_depth(source))
    remove_permalinks(tree)
    _report(remove_hidden(tree), out)
    if tree.body is not None:
        write_tree(tree.body, out, below)


def _report(pruned: Pruned, out: TextBuilder) -> None:
    out.hidden += pruned.hidden
    out.unsaid = _UNSAID
    if pruned.cut_short:
        out.warn("Its style sheets are too large to apply all of them: text that they hide may be part of the text.")


def _main(tree: LexborHTMLParser, shown: TextBuilder) -> TextBuilder:
    """The main content, or `shown` (everything) if none stands out or nearly everything is content."""
    content = main_content(tree)
    if content is None:
        return shown
    main = _written(content.body, shown.limits)
    if not 0 < main.length < _WHOLE * shown.length:
        return shown  # the page itself keeps more of its structure than the selection does
    remove_menus(tree)
    element = main_element(tree, content)
    if element is None or len(content.css("h2, h3, h4, h5, h6")) < _SECTIONS:
        return main
    handbook = TextBuilder("html", shown.limits)
    if element.css_first("h1") is None and (title := content.css_first("h1")) is not None:
        handbook.heading(title.text(), 1)  # it stands above the element
    write_tree(element, handbook)
    return handbook if handbook.length > _MOSTLY * _written(tree.body, shown.limits).length else main


def _written(node: LexborNode | None, limits: FileLimits) -> TextBuilder:
    out = TextBuilder("html", limits)
    if node is not None:
        write_tree(node, out)
    return out


_TITLES = ("citation_title", "dc.title", "og:title", "twitter:title")
_AUTHORS = ("citation_author", "citation_authors", "dc.creator", "author", "article:author", "parsely-author")
_DATES = (
    "citation_publication_date", "citation_date", "citation_online_date", "article:published_time", "og:published_time",
    "datepublished", "dc.date.issued", "dcterms.issued", "dc.date", "dcterms.date", "dcterms.created", "pubdate",
    "publish-date", "publication_date", "parsely-pub-date", "sailthru.date", "date",
)  # fmt: skip
_TIMES = "time[pubdate][datetime], time[itemprop=datePublished][datetime], article header time[datetime]"
_ARTICLE = re.compile(r"article|posting|report|webpage|book|thesis|review|recipe|dataset|creativework", re.IGNORECASE)


def _facts(tree: LexborHTMLParser) -> dict[str, Any]:
    metas: dict[str, list[str]] = {}
    for node in tree.css("meta[content]"):
        key = node.attributes.get("name") or node.attributes.get("property") or node.attributes.get("itemprop") or ""
        metas.setdefault(key.strip().lower(), []).append(node.attributes.get("content") or "")
    linked = _linked_data(tree)
    people = linked.get("author") or linked.get("creator") or []
    named = [person.get("name") if isinstance(person, dict) else person for person in _listed(people)]
    times = [node.attributes.get("datetime") or "" for node in tree.css(_TIMES)[:1]]
    titles = (_text(linked.get("headline")), *(value for key in _TITLES for value in metas.get(key, ())))
    dates = (_text(linked.get("datePublished")), *(value for key in _DATES for value in metas.get(key, ())), *times)
    authors = (parse_authors(*names) for names in (map(_text, named), *(metas.get(key, ()) for key in _AUTHORS)))
    html = tree.css_first("html")
    declared = (html.attributes.get("lang") or html.attributes.get("xml:lang") or "") if html is not None else ""
    code = declared.strip().lower().replace("_", "-").split("-")[0]
    return {
        "title": _title(tree, next(filter(None, map(plausible_title, titles)), "")),
        "authors": next(filter(None, authors), ()),
        "date": next(filter(None, map(parse_date, dates)), None),
        "language": code if re.fullmatch(r"[a-z]{2,3}", code) else None,
    }


def _title(tree: LexborHTMLParser, offered: str) -> str:
    """The title of a page whose metadata offers one, or none."""
    headings = [plausible_title(node.text()) for node in tree.css("h1")]
    tag = tree.css_first("head > title") or tree.css_first("title")
    tagged = plausible_title(tag.text()) if tag is not None else ""
    # `Heading | Site` in the title element is best cut at the end of the page's own heading.
    for heading in headings:
        if heading and len(heading) > 3 and (heading in tagged or heading == offered):
            return heading
    return offered or tagged or next(filter(None, headings), "")


def _linked_data(tree: LexborHTMLParser) -> dict[str, Any]:
    """The first JSON-LD object on the page that describes an article or something similar."""
    for node in tree.css('script[type="application/ld+json"]'):
        try:
            held = json.loads(node.text(), strict=False)
        except (ValueError, RecursionError):
            continue
        items = _listed(held)
        graphs = [item["@graph"] for item in items if isinstance(item, dict) and isinstance(item.get("@graph"), list)]
        for item in (*items, *(inner for graph in graphs for inner in graph)):
            described = isinstance(item, dict) and ("headline" in item or "datePublished" in item)
            if described and _ARTICLE.search(str(item.get("@type", ""))):
                return item
    return {}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _text(value[0]) if isinstance(value, list) and value else ""


_SURROUNDINGS = "nav, aside, footer, form, [role=navigation], [role=contentinfo]"
_MENU = 0.7  # of the text of a table
_LINKED = 0.1  # of the visible text; menus consist of links, prose does not
_ENTRIES, _LEADS = 5, 0.9  # links of a table of contents, and their share of its text
_NEARLY_ALL = 0.97  # of the blocks of the main content
_CONTENT_BLOCKS = "p, li, h1, h2, h3, h4, h5, h6, pre, td, th, dt, dd, blockquote"
_OPENING = 60  # characters by which a block is recognised


def remove_menus(tree: LexborHTMLParser) -> None:
    """Remove menus, and lists that only lead to the parts of the page."""
    contents = [node for node in tree.css("ul, ol") if _is_contents(node)]
    for menu in (*tree.css(_SURROUNDINGS), *contents):
        menu.decompose(recursive=False)  # unlinked, not freed: there may be menus within menus


def _is_contents(node: LexborNode) -> bool:
    links = node.css("a[href^='#']")
    linked = sum(len(link.text().strip()) for link in links)
    return len(links) >= _ENTRIES and linked > _LEADS * len("".join(node.text().split()))


def has_surroundings(tree: LexborHTMLParser, length: int) -> bool:
    """Whether the page has anything beside its content: a report saved as HTML has no menus, and all of it counts."""
    if tree.css_first(_SURROUNDINGS) is not None:
        return True
    linked = sum(len(link.text()) for link in tree.css("a[href]:not([href^='#'])"))
    return linked > _LINKED * length


def main_content(tree: LexborHTMLParser) -> LexborHTMLParser | None:
    """The main content, by trafilatura; None if there is none. It gets only the page's characters, never a URL."""
    from trafilatura import bare_extraction
    from trafilatura.htmlprocessing import convert_to_html

    page = LexborHTMLParser(tree.html or "")
    _flatten_cells(page)
    _flatten_code(page)
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    try:
        found = bare_extraction(page.html or "", include_formatting=True, include_comments=False)
        body = getattr(found, "body", None)
        if body is None:
            return None
        for item in body.iter("item"):
            kind = (item.get("rend") or "")[:3]
            item.tag = kind[:2] if kind in {"dt-", "dd-"} else "item"
        return LexborHTMLParser(tostring(convert_to_html(body), encoding="unicode"))
    except MemoryError:
        raise
    except Exception:  # if the selection fails in any way, the visible text remains
        return None


def main_element(tree: LexborHTMLParser, content: LexborHTMLParser) -> LexborNode | None:
    """The smallest element of the page that holds nearly all blocks of its main content; None if only the whole page does.

    The content itself may lack nested lists and tables, which the element has."""
    selected = {opening for node in content.css(_CONTENT_BLOCKS) if (opening := _opening(node))}
    found: dict[int, int] = {}  # per element: the selected blocks in it
    total = 0
    for node in tree.css(_CONTENT_BLOCKS):
        if _opening(node) in selected:
            total += 1
            above = node.parent
            while above is not None:
                found[above.mem_id] = found.get(above.mem_id, 0) + 1
                above = above.parent
    element = tree.body
    inner = element
    while inner is not None:
        element = inner
        inner = next((node for node in element.iter() if found.get(node.mem_id, 0) > _NEARLY_ALL * total), None)
    return element if total and element is not None and element.tag not in {"body", "html"} else None


def _opening(node: LexborNode) -> str:
    return " ".join(node.text().split())[:_OPENING]


def _flatten_cells(tree: LexborHTMLParser) -> None:
    """Leave only text in the cells of tables: the selection of the main content drops lists and boxes inside a cell. Tables
    of links are menus, and stay as they are."""
    for table in tree.css("table"):
        linked = sum(len(link.text()) for link in table.css("a"))
        if table.css_first("table table") is not None or linked > _MENU * len(table.text()):
            continue
        for cell in table.css("td, th"):
            if cell.css_first("div, ul, ol, dl, p") is None:
                continue
            for item in cell.css("li + li, dd + dd"):
                item.insert_before(", ")
            for block in cell.css("div, p, br, ul, ol"):
                block.insert_before(" ")
            cell.inner_html = escape(" ".join(cell.text().split()).replace(" ,", ","))


def _flatten_code(tree: LexborHTMLParser) -> None:
    """Leave only text in blocks of code, and unmark code in running text: the selection takes every `code` for a block, and
    every other `pre` for a quotation."""
    for block in tree.css("pre"):
        for end in block.css("br, code + code"):
            end.insert_before("\n")
        block.inner_html = f"<code>{escape(block.text())}</code>"
    for words in tree.css(":not(pre) > code"):
        words.unwrap()
