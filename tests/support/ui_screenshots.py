"""Takes the pictures of docs/how-to/ui.md: `make screenshots`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from ottla.protocol import messages as m

from .ask import produce
from .chromium import HEIGHT, WIDTH, browser
from .poll import until
from .sources import ROOT
from .ui_driver import Driver
from .ui_scene import PARTITIONS, everything, ui_process
from .wire import Wire

OUT = ROOT / "docs" / "how-to" / "ui"
ROUNDS, EVERY_S = 150, 0.1  # of work for the charts
TALL = 1400
BYTES_MAX = 200_000


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    with everything() as broker, browser() as chrome, ui_process(broker.lab_url) as url:
        page = Driver(chrome, url)

        def take(name: str) -> None:
            page.settles()
            chrome.save_screenshot(str(OUT / f"{name}.png"))

        page.open("/b/0/topics")
        page.cell("Topics", "payments", 4, "3")
        take("topics")
        with Wire(broker.bootstrap_servers, client_id="shop") as wire:
            _topic(page, take)
            _group(page, take)
            page.open("/b/0/queues")
            page.cell("Share-partitions", "parcels/0", 8, "12")
            take("queues")
            page.open("/b/0/transactions")
            page.cell("Held back", "orders/2", 5, "checkout")
            take("transactions")
            _requests(page, wire, take)
            _faults(page, take)
            _metrics(page, wire, take)
    for picture in sorted(OUT.glob("*.png")):
        size = picture.stat().st_size
        print(f"{picture.relative_to(ROOT)}  {size:,} bytes")
        assert size < BYTES_MAX, f"{picture.name} is too large for the repository"


def _topic(page: Driver, take: Callable[[str], None]) -> None:
    page.open("/b/0/topics/payments")
    page.cell("Partitions", "1", 7, "3")
    page.choose("Partition", "partition 1")
    page.cell("Records", "4", 7, "nobody")
    page.click_cell("Records", "4")
    page.sees("leader epoch", ".detail")
    take("topic")
    page.click("[data-theme]")
    page.finds("body.body--dark")
    take("topic-dark")
    page.click("[data-theme]")
    page.finds("body:not(.body--dark)")
    page.open("/b/0/topics/__consumer_offsets")
    page.sees("OffsetCommit", 'section[aria-label="Records"]')
    take("internal")


def _group(page: Driver, take: Callable[[str], None]) -> None:
    page.open("/b/0/group?name=billing")
    page.cell("Members", "billing-3", 4, "waits for partitions")
    page.sees("billing-3 became a member", 'section[aria-label="Timeline"]')
    page.finds('[aria-label="Who had what"] svg path[stroke-width="9"]')
    page.chrome.set_window_size(WIDTH, TALL)
    take("group")
    page.chrome.set_window_size(WIDTH, HEIGHT)


def _requests(page: Driver, wire: Wire, take: Callable[[str], None]) -> None:
    page.open("/b/0/requests")
    page.click("[data-watch]")
    page.sees("stop", "[data-watch]")
    wire.ask("Metadata", 12, m.MetadataRequest(topics=[]))
    produce(wire, "orders", b"one more")
    page.sees("Produce", 'section[aria-label="Live requests"]')
    page.types('input[aria-label="API to hold"]', "ListGroups")
    page.click("[data-hold]")
    page.sees("api=ListGroups", 'section[aria-label="Holds"]')
    wire.say("ListGroups", 4, m.ListGroupsRequest())
    page.cell("Held requests", "1", 2, "ListGroups v4")
    page.click('section[aria-label="Live requests"] button.cell')
    page.sees("correlation_id", ".detail")
    take("requests")
    page.act("release request 1")
    wire.reply("ListGroups", 4)
    page.act("end hold 1")
    page.sees("No requests are held.")


def _faults(page: Driver, take: Callable[[str], None]) -> None:
    page.open("/b/0/faults")
    page.holds('input[aria-label="Values of the action"]', "error=NOT_LEADER_OR_FOLLOWER")
    page.types('input[aria-label="API"]', "DeleteRecords")
    page.types('input[aria-label="How often"]', "3")
    page.click("[data-add]")
    page.cell("Faults", "1", 6, "3")
    take("faults")


def _metrics(page: Driver, wire: Wire, take: Callable[[str], None]) -> None:
    page.open("/b/0/metrics")
    rounds = count(1)

    def work() -> bool:
        number = next(rounds)
        for _ in range(number % 40):
            produce(wire, "orders", b"x" * 300, partition=number % PARTITIONS)
        wire.ask("Metadata", 12, m.MetadataRequest(topics=[]))
        return number >= ROUNDS

    until(work, "there is something to see", every=EVERY_S)
    page.finds('[aria-label="Connections"] svg path')
    take("metrics")


if __name__ == "__main__":
    main()
