"""What a first visit fetches, and how little a second one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from browser_session import Desk, Reader, desk_fixtures
from lighthouse import PAPERS
from playwright.sync_api import Browser, Page, expect

REQUESTS, KILOBYTES = 12, 120  # of a first visit, over the wire, headers and all
SECOND = 15  # kilobytes of a second one
Reads = Callable[..., Reader]
model, served = desk_fixtures(PAPERS)


class Wire:
    """What went over the wire to this page, as Chromium counts it."""

    def __init__(self, page: Page) -> None:
        self.bytes: dict[str, float] = {}
        self._addresses: dict[str, str] = {}
        self._cached: set[str] = set()
        session = page.context.new_cdp_session(page)
        session.send("Network.enable")
        session.on("Network.requestWillBeSent", self._asked)
        session.on("Network.requestServedFromCache", lambda event: self._cached.add(event["requestId"]))
        session.on("Network.responseReceived", self._answered)
        session.on("Network.loadingFinished", self._finished)

    def _asked(self, event: dict) -> None:
        self._addresses[event["requestId"]] = event["request"]["url"]

    def _answered(self, event: dict) -> None:
        if event["response"].get("fromDiskCache"):
            self._cached.add(event["requestId"])

    def _finished(self, event: dict) -> None:
        if event["requestId"] not in self._cached:
            self.bytes[self._addresses[event["requestId"]]] = event["encodedDataLength"]

    @property
    def kilobytes(self) -> float:
        return sum(self.bytes.values()) / 1000


def arrived(page: Page) -> None:
    expect(page.get_by_label("Your question")).to_be_visible()
    page.wait_for_load_state("networkidle")


def test_a_first_visit_is_small_and_a_second_one_fetches_almost_nothing(browser: Browser, served: Desk):
    page = browser.new_page()  # not a Reader's: watching what leaves the server turns the browser's cache off
    wire = Wire(page)
    page.goto(served.url)
    arrived(page)
    assert 5 <= len(wire.bytes) <= REQUESTS, wire.bytes
    assert wire.kilobytes <= KILOBYTES, wire.bytes
    print(f"\nfirst visit: {len(wire.bytes)} requests, {wire.kilobytes:.1f} kB")
    wire.bytes.clear()
    page.goto("about:blank")
    page.goto(served.url)
    arrived(page)
    assert wire.bytes and wire.kilobytes <= SECOND, wire.bytes
    assert not [each for each in wire.bytes if "/static/" in each], wire.bytes
    print(f"second visit: {len(wire.bytes)} requests, {wire.kilobytes:.1f} kB")
    page.close()


def test_other_screens_come_together_once(served: Desk, reads: Reads):
    reader = reads(served)
    page = reader.goes()
    arrived(page)
    assert sum(each.startswith("/static/screens-") for each in reader.asked) == 0
    for name in ("documents", "synthesis", "runs", "reviews"):
        reader.goes(f"#/{name}")
        expect(page.get_by_role("main").get_by_role("heading").first).to_be_visible()
    assert sum(each.startswith("/static/screens-") for each in reader.asked) == 1


@pytest.mark.parametrize("address", ["#/health", "#/settings"])
def test_an_old_address_opens_its_screen_at_once(served: Desk, address: str, reads: Reads):
    page = reads(served).goes(address)
    expect(page.get_by_role("main").get_by_role("heading", level=1)).to_be_visible()
