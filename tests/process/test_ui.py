"""`ottla ui` in Debian's Chromium: what each page shows and does, while the broker changes, is empty, large or gone."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from urllib.error import HTTPError
from urllib.request import HTTPCookieProcessor, build_opener, urlopen

import pytest
from ottla.protocol import messages as m

from ottla.testing import Broker
from ottla.ui import words
from ottla.ui.server import HEARD_S
from ottla.ui.words import time as time_text

from ..support.chromium import Missing, browser
from ..support.poll import until
from ..support.share_session import ShareSession
from ..support.ui_driver import Driver
from ..support.ui_scene import SETTINGS, commit, everything, join, ui_process
from ..support.wire import Wire

pytestmark = pytest.mark.slow
TOPICS, MEMBERS = 1000, 500
HOSTILE = "<img src=x onerror=window.broken=1>{{7*7}}"


@pytest.fixture(scope="module")
def shop() -> Iterator[Broker]:
    with everything() as broker:
        yield broker


@pytest.fixture(scope="module")
def other() -> Iterator[Broker]:
    """A broker without anything, whose lab has the same port after a restart."""
    with Broker({**SETTINGS, "ottla.lab.port": 0}, lab=False) as broker:
        broker.settings["ottla.lab.port"] = int(broker.lab_url.rpartition(":")[2])
        yield broker
        broker.stop()
        shutil.rmtree(broker.data_directory)  # a thousand empty logs are nothing for Kafka's tool to read


@pytest.fixture(scope="module")
def chromium(shop: Broker, other: Broker) -> Iterator[Driver]:
    """The pages of both brokers: `/b/0` has something of everything, `/b/1` has nothing at first."""
    try:
        with browser() as driver, ui_process(shop.lab_url, other.lab_url) as url:
            yield Driver(driver, url)
    except Missing as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


@pytest.fixture
def page(chromium: Driver) -> Iterator[Driver]:
    """At the end the browser has complained of nothing, and has asked no other host."""
    yield chromium
    assert chromium.complaints() == []
    assert chromium.asked_elsewhere() == set()


def test_the_page_of_brokers_with_a_token_has_a_token_too() -> None:
    with (
        Broker({"ottla.lab.token": "of-the-lab"}) as broker,
        ui_process(broker.lab_url, OTTLA_LAB_TOKEN="of-the-lab") as url,
    ):
        address, _, token = url.partition("?token=")
        assert len(token) > 20
        assert "of-the-lab" not in url
        with pytest.raises(HTTPError, match="401") as refused:
            urlopen(address, timeout=60)
        refused.value.close()
        with build_opener(HTTPCookieProcessor()).open(url, timeout=60) as found:
            assert found.url == address
            assert b"of-the-lab" not in found.read()


def test_the_first_page_leads_to_each_broker(page: Driver, shop: Broker) -> None:
    page.open("/")
    page.sees("8 topics, 4 groups")
    page.sees("0 topics, 0 groups")
    page.click(f'a[aria-label="Broker {shop.lab_url.removeprefix("http://")}"]')
    page.sees("connected", "[data-state]")
    page.cell("Topics", "orders", 3, "49")


def test_topics_change_before_ones_eyes_and_are_held_stepped_and_released(page: Driver, shop: Broker) -> None:
    page.open("/b/0/topics")
    page.cell("Topics", "shipments", 3, "0")
    shop.lab.post("records/shipments", value="first")
    page.cell("Topics", "shipments", 3, "1")
    page.act("hold shipments")
    page.cell("Topics", "shipments", 8, "held")
    shop.lab.post("records/shipments", value="hidden")
    page.cell("Topics", "shipments", 4, "1")
    page.act("step shipments")
    page.cell("Topics", "shipments", 4, "–")
    page.act("release shipments")
    page.cell("Topics", "shipments", 8, "immediate")
    assert shop.lab.topic("shipments")["partitions"][0]["policy"] == "immediate"  # type: ignore[index]


def test_topics_are_created_and_deleted(page: Driver, shop: Broker) -> None:
    page.open("/b/0/topics")
    page.click("[data-new]")
    page.types('input[aria-label="name"]', "short-lived")
    page.confirm()
    page.cell("Topics", "short-lived", 2, "1")
    page.act("delete short-lived")
    page.sees("Delete the topic short-lived with all its records?", ".ask")
    page.confirm()
    page.lacks('section[aria-label="Topics"]', "short-lived")
    assert "short-lived" not in [one["topic"] for one in shop.lab.get("topics")["topics"]]


def test_a_dialog_stays_while_the_browser_is_away(page: Driver, shop: Broker) -> None:
    """As one that gets no processor for a while. A page that is loaded again has no dialog, and deletes nothing."""
    shop.lab.seed({"name": "asked-for", "partitions": 1})
    page.open("/b/0/topics")
    page.act("delete asked-for")
    page.sees("Delete the topic asked-for with all its records?", ".ask")
    page.is_away(HEARD_S + 1)
    page.confirm()
    page.lacks('section[aria-label="Topics"]', "asked-for")
    assert "asked-for" not in [one["topic"] for one in shop.lab.get("topics")["topics"]]


def test_records_are_found_shown_in_detail_and_produced(page: Driver) -> None:
    page.open("/b/0/topics/orders")
    page.cell("Partitions", "2", 6, "17")
    page.cell("Records", "15", 4, "customer-3")
    page.click_cell("Records", "15")
    page.sees("trace", ".detail")
    page.sees('"currency": "EUR"', ".detail")
    page.choose("Which records", "with key")
    page.types('input[aria-label="Offset, time, key or text"]', "customer-6")
    page.cell("Records", "2", 4, "customer-6")
    page.lacks('section[aria-label="Records"]', "customer-3")
    page.choose("Which records", "the last ones")
    page.click("[data-produce]")
    page.types('input[aria-label="key"]', "by hand")
    page.types('textarea[aria-label="value"]', "é\n2")
    page.types('textarea[aria-label="headers, a line each: name=value"]', "from=page")
    page.confirm()
    page.cell("Records", "16", 4, "by hand")
    page.cell("Records", "16", 6, "from=page")


def test_records_of_transactions_and_internal_topics_say_what_they_are(page: Driver) -> None:
    page.open("/b/0/topics/orders")
    page.cell("Partitions", "2", 4, "16")
    page.choose("Partition", "partition 2")
    page.cell("Records", "16", 7, "uncommitted")
    page.open("/b/0/topics/__consumer_offsets")
    page.sees("OffsetCommit", 'section[aria-label="Records"]')
    page.sees("group_id=billing", 'section[aria-label="Records"]')


def test_a_group_shows_members_what_it_waits_for_and_what_happened(page: Driver) -> None:
    page.open("/b/0/groups")
    page.cell("Groups", "billing", 4, "3")
    page.follow("Groups", "billing")
    page.cell("Waits for", "billing-1", 2, "heartbeat")
    page.cell("Members", "billing-3", 4, "waits for partitions")
    page.cell("Offsets", "orders/2", 5, "8")
    page.sees("billing-3 became a member", 'section[aria-label="Timeline"]')
    page.finds('[aria-label="Who had what"] svg path[stroke-width="9"]')
    page.finds('[aria-label="Timeline of the group"] svg path')


def test_offsets_are_reset(page: Driver, shop: Broker) -> None:
    page.open("/b/0/group?name=nightly")
    page.cell("Offsets", "orders/1", 2, "3")
    page.act("reset orders/1")
    page.confirm()
    page.sees("orders/1: 3 → 0", "[data-plan]")
    page.cell("Offsets", "orders/1", 2, "3")
    page.confirm("[data-carry-out]")
    page.cell("Offsets", "orders/1", 2, "0")
    committed = {one["partition"]: one["committed_offset"] for one in shop.lab.group("nightly")["offsets"]}
    assert committed == {0: 3, 1: 0, 2: 3}


def test_a_streams_group_shows_its_topology_and_each_task(page: Driver) -> None:
    page.open("/b/0/groups")
    page.choose("Kind", "streams")
    page.follow("Groups", "counting")
    page.sees("topology epoch 0   fits the topics yes", "[data-topology]")
    page.cell("Subtopologies", "0", 2, "2")
    page.cell("Subtopologies", "0", 5, "counting-totals-changelog")
    page.cell("Tasks", "0_0", 3, "owned")
    page.types('input[aria-label="Filter Tasks"]', "pending")
    page.cell("Tasks", "0_1", 4, "counter-2")
    page.cell("Tasks", "0_1", 7, "counter-1")
    page.cell("Processes", "counter-2", 2, "process-counter-2")
    page.cell("Waits for", "counter-1", 2, "heartbeat")
    page.open("/b/0/group?name=billing")
    page.cell("Members", "billing-3", 4, "waits for partitions")
    page.hides("[data-topology]")


def test_queues_show_each_record_and_transactions_who_holds_back_whom(page: Driver) -> None:
    page.open("/b/0/queues")
    page.cell("Share-partitions", "parcels/0", 8, "12")
    page.cell("Records in flight", "1", 3, "acknowledged")
    page.cell("Records in flight", "3–4", 4, "m")
    page.sees("released", 'section[aria-label="What happened"]')
    page.open("/b/0/transactions")
    page.cell("Held back", "orders/2", 5, "checkout")
    page.cell("Transactions", "checkout", 2, "Ongoing")


def test_clients_are_shown_with_what_they_asked_for(page: Driver, shop: Broker) -> None:
    with Wire(shop.bootstrap_servers, client_id="newcomer") as wire:
        page.open("/b/0/clients")
        page.sees("billing-service", 'section[aria-label="Clients"]')
        wire.ask("Metadata", 12, m.MetadataRequest(topics=[]))
        page.sees("newcomer", 'section[aria-label="Clients"]')
        page.types('input[aria-label="Filter Clients"]', "newcomer")
        page.lacks('section[aria-label="Clients"]', "billing-service")
        page.click('section[aria-label="Clients"] button.cell')
        page.sees('"Metadata v12": 1', ".detail")
    page.lacks('section[aria-label="Clients"]', "newcomer")


def test_faults_are_added_counted_and_removed(page: Driver, shop: Broker) -> None:
    page.open("/b/0/faults")
    page.sees("There are no faults")
    page.holds('input[aria-label="Values of the action"]', "error=NOT_LEADER_OR_FOLLOWER")
    page.types('input[aria-label="API"]', "ListOffsets")
    page.click("[data-add]")
    page.cell("Faults", "1", 3, "api=ListOffsets")
    r = m.ListOffsetsRequest
    part = r.ListOffsetsPartition(partition_index=0, timestamp=-1)
    with Wire(shop.bootstrap_servers) as wire:
        reply = wire.ask("ListOffsets", 7, r(topics=[r.ListOffsetsTopic(name="orders", partitions=[part])]))
    assert reply.topics[0].partitions[0].error_code == 6
    page.cell("Faults", "1", 5, "1")
    page.act("remove fault 1")
    page.sees("There are no faults")
    assert shop.lab.get("faults")["faults"] == []


def test_requests_are_watched_held_and_released(page: Driver, shop: Broker) -> None:
    page.open("/b/0/requests")
    page.click("[data-watch]")
    page.sees("stop", "[data-watch]")
    with Wire(shop.bootstrap_servers, client_id="watched") as wire:
        wire.ask("DescribeCluster", 1, m.DescribeClusterRequest())
        page.sees("DescribeCluster v1", 'section[aria-label="Live requests"]')
        page.click('section[aria-label="Live requests"] button.cell')
        page.sees('"correlation_id": 1', ".detail")
        page.types('input[aria-label="API to hold"]', "ListGroups")
        page.click("[data-hold]")
        page.sees("api=ListGroups", 'section[aria-label="Holds"]')
        wire.say("ListGroups", 4, m.ListGroupsRequest())
        page.cell("Held requests", "1", 2, "ListGroups v4")
        page.act("release request 1")
        assert wire.reply("ListGroups", 4).error_code == 0
        page.sees("No request waits.")
        page.act("end hold 1")
    page.open("/b/0/clock")
    until(lambda: not shop.lab.get("traces")["traces"], "the watch ends with its page")


def test_the_clock_is_frozen_and_advanced(page: Driver, shop: Broker) -> None:
    page.open("/b/0/clock")
    page.click("[data-freeze]")
    page.sees("time stands still")
    page.sees("clock frozen", ".chip-clock")
    before = shop.lab.get("clock")["now_ms"]
    page.click("[data-advance]")
    until(lambda: shop.lab.get("clock")["now_ms"] == before + 45_000, "45 s have passed")
    page.sees(time_text(before + 45_000), "[data-now]")
    page.click("[data-system]")
    page.sees("time passes as the machine's")
    shop.lab.reset()
    shop.lab.hold("payments", 1)


def test_metrics_are_charts_and_a_table(page: Driver) -> None:
    page.open("/b/0/metrics")
    page.finds('[aria-label="Connections"] svg path')
    page.types('input[aria-label="Filter All metrics"]', "connection_count")
    page.cell("All metrics", "kafka_server_socket_server_metrics_connection_count", 3, "3")


def test_clients_are_examined(page: Driver, shop: Broker) -> None:
    page.open("/b/0/verdict")
    page.click("[data-examine]")
    page.sees("stop", "[data-examine]")
    with Wire(shop.bootstrap_servers, client_id="examined") as wire:
        wire.ask("Metadata", 12, m.MetadataRequest(topics=[]))
        page.sees("examined", 'section[aria-label="Clients"]')
        page.click_cell("Clients", "examined")
        page.sees("Rules on examined")
        page.click('section[aria-label="Rules"] button.cell')
        page.finds(".detail .heading")
    page.click("[data-examine]")
    page.sees("examine", "[data-examine]")


EMPTY = {
    "topics": "There are no topics.",
    "groups": "There are no groups.",
    "queues": "No member of a share group has fetched yet",
    "transactions": "There are no transactions.",
    "clients": "No client is connected.",
    "faults": "There are no faults",
    "verdict": "Clients are not examined",
    "topics/absent": "topic absent does not exist",
    "group?name=absent": "group absent does not exist",
}


@pytest.mark.parametrize("path", EMPTY)
def test_a_page_without_anything_says_so(page: Driver, path: str) -> None:
    page.open(f"/b/1/{path}")
    page.sees("connected", "[data-state]")
    page.sees(EMPTY[path])


def test_a_broker_that_is_gone_is_told_of_and_the_page_goes_on_when_it_is_back(page: Driver, other: Broker) -> None:
    other.lab.seed({"name": "kept"})
    page.open("/b/1/topics")
    page.cell("Topics", "kept", 3, "0")
    other.kill()
    page.sees("gone", "[data-state]")
    page.sees("cannot reach the lab", ".banner")
    page.cell("Topics", "kept", 3, "0")  # what was known last
    page.act("hold kept")
    page.sees("cannot reach the lab", ".q-notification")
    other.start()
    other.lab.post("records/kept", value="first")
    page.sees("connected", "[data-state]")
    page.cell("Topics", "kept", 3, "1")
    page.hides(".banner")


def test_what_clients_chose_is_shown_as_text(page: Driver, other: Broker) -> None:
    other.lab.seed({"name": "chosen"})
    for _ in range(2):
        other.lab.post("records/chosen", key=HOSTILE, value=HOSTILE, headers={HOSTILE: HOSTILE})
    with Wire(other.bootstrap_servers, client_id=HOSTILE) as wire:
        wire.ask("FindCoordinator", 4, m.FindCoordinatorRequest(coordinator_keys=[HOSTILE]))
        join(wire, HOSTILE, HOSTILE, "chosen")
        page.open("/b/1/topics/chosen")
        page.cell("Records", "1", 4, HOSTILE)
        page.click_cell("Records", "1")
        page.sees(HOSTILE, ".header-value")
        page.open("/b/1/clients")
        page.sees(HOSTILE, 'section[aria-label="Clients"]')
        page.open("/b/1/groups")
        page.follow("Groups", HOSTILE)
        page.cell("Members", HOSTILE, 2, HOSTILE)
        page.sees(f"{HOSTILE} became a member", 'section[aria-label="Timeline"]')
    assert page.count("main img") == 0
    assert page.value("window.broken") is None


def test_the_start_offsets_of_a_share_group_are_reset_and_forgotten(page: Driver, other: Broker) -> None:
    other.lab.seed({"name": "returns"})
    for number in range(4):
        other.lab.post("records/returns", value=f"{number}")
    topic_id = bytes.fromhex(other.lab.topic("returns")["topic_id"])
    with Wire(other.bootstrap_servers, client_id="returns") as wire:
        wire.ask("FindCoordinator", 4, m.FindCoordinatorRequest(coordinator_keys=["returns"]))
        session = ShareSession(wire, "returns", topic_id, 1)
        page.open("/b/1/group?name=returns")
        page.act("reset returns/0")
        page.confirm()
        page.sees("the group returns has members: stop them first", ".q-notification")
        session.leave()
    page.act("reset returns/0")
    page.choose("to", "the high watermark")
    page.confirm()
    page.sees(f"returns/0: {words.MINUS} → 4", "[data-plan]")
    page.confirm("[data-carry-out]")
    page.cell("Share-partitions", "returns/0", 2, "4")
    page.cell("Share-partitions", "returns/0", 5, "0")
    page.act("forget returns/0")
    page.sees("returns/0: 4", "[data-plan]")
    page.confirm("[data-carry-out]")
    page.sees("There are no share-partitions.")
    assert other.lab.group("returns")["share_partitions"] == []


def test_a_thousand_topics_and_five_hundred_members_come_in_pages(page: Driver, other: Broker) -> None:
    other.lab.seed({"name": "kept"})
    for start in range(0, TOPICS, 250):
        other.lab.seed(*({"name": f"many-{number:04}"} for number in range(start, start + 250)))
    with Wire(other.bootstrap_servers) as wire:
        wire.ask("FindCoordinator", 4, m.FindCoordinatorRequest(coordinator_keys=["crowd"]))
        for number in range(MEMBERS):
            join(wire, "crowd", f"member-{number:03}", "kept")
        commit(wire, "lonely", "kept", {0: 1})
        page.open("/b/1/topics")
        page.sees("1–50 of 1,00")
        page.click(".pager button:last-child")
        page.sees("51–100 of 1,00")
        page.types('input[aria-label="Filter topics"]', "many-0777")
        page.cell("Topics", "many-0777", 2, "1")
        page.lacks('section[aria-label="Topics"]', "many-0100")
        page.open("/b/1/group?name=crowd")
        page.sees("members 500", ".facts")
        page.types('input[aria-label="Filter Members"]', "member-499")
        page.cell("Members", "member-499", 5, "501")
    assert page.count('section[aria-label="Members"] tbody tr') == 1


def test_keys_lead_to_pages_and_fields(page: Driver) -> None:
    page.open("/b/0/topics")
    page.keys("/")
    page.has_focus('input[aria-label="Filter topics"]')
    page.keys("ord")
    page.lacks('section[aria-label="Topics"]', "payments")
    page.escape()
    page.keys("gc")
    page.sees("Clients", ".title")


def test_the_theme_is_chosen_and_remembered(page: Driver) -> None:
    page.open("/b/0/clients")
    page.sees("connected", "[data-state]")
    page.click("[data-theme]")
    page.finds("body.body--dark")
    page.keys("gt")
    page.sees("Topics", ".title")
    page.finds("body.body--dark")
    page.open("/b/0/topics")
    page.finds("body.body--dark")  # it is remembered
    page.sees("connected", "[data-state]")
    page.click("[data-theme]")
    page.finds("body:not(.body--dark)")


@pytest.mark.parametrize("path", ["", "b/0/topics", "b/0/topics/orders", "b/0/group?name=billing", "b/0/requests"])
def test_everything_that_can_be_used_has_a_name(page: Driver, path: str) -> None:
    page.open(f"/{path}")
    if path:
        page.sees("connected", "[data-state]")
    assert page.nameless() == []
