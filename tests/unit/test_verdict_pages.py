"""The report as a page and as a badge: complete, readable by everyone, and safe whatever a peer calls itself."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import Counter
from html.parser import HTMLParser

import pytest
from ottla.protocol import messages as m
from ottla.verdict.badge import AMBER, GREEN, GREY, LABEL_COLOUR, RED, badge
from ottla.verdict.html_report import SHOWN, html
from ottla.verdict.html_style import STYLE
from ottla.verdict.report import ClientReport, RuleReport, Together, counts

from ..support.verdict_cases import heartbeat
from ..support.verdict_script import Script

HOSTILE = '<script>alert("1")</script>\'"><img src=x onerror=alert(1)>&amp;]]>\u202e\x00\x1b[2J'
BROKEN = "KIP-848.epoch-echoed"
VOID = {"meta", "input"}
TAGS = """html head meta title style body main h1 h2 p section div fieldset legend label input table caption thead tbody
tr th td span a details summary ol li code"""


class Page(HTMLParser):
    """A page as a browser reads it: its elements, and the text that each has itself."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None], list[str]]] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs), []))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and data.strip():
            self.elements[-1][2].append(data)

    def of(self, tag: str) -> list[tuple[dict[str, str | None], str]]:
        return [(attributes, "".join(texts)) for name, attributes, texts in self.elements if name == tag]


def reports(client_id: str | None = "shop", software: str = "wire", failures: int = 1) -> list[ClientReport]:
    """A client that breaks one rule so often, and keeps others."""
    script = Script()
    named = m.ApiVersionsRequest(client_software_name=software, client_software_version="1.0")
    script.opens()
    script.asks("ApiVersions", 4, named, m.ApiVersionsResponse())
    for _ in range(failures):
        heartbeat(script, 0, 4)
        heartbeat(script, 3, 4)
    (found,) = script.reports()
    found["client_id"] = client_id
    found["rules"] = [one for one in found["rules"] if one["outcome"] != "failed" or one["id"] == BROKEN]
    return [found]


def broken(client: ClientReport) -> list[RuleReport]:
    return [one for one in client["rules"] if one["outcome"] == "failed"]


def page(clients: list[ClientReport]) -> Page:
    return Page("".join(html(clients)))


def test_a_page_has_each_rule_of_each_client_with_its_reason_and_its_link() -> None:
    clients = [*reports("shop"), *reports("till", failures=0)]
    seen = page(clients)
    texts = [text for _, text in seen.of("p")]
    links = {text: attributes["href"] for attributes, text in seen.of("a")}
    for one in clients[0]["rules"]:
        assert texts.count(one["what"]) == len(clients)
        assert one["why"] in texts
        assert links[one["id"]] == one["link"]
    shown = Counter(text for attributes, text in seen.of("span"))
    expected = sum((Counter(counts(one["rules"])) for one in clients), Counter[str]())
    assert shown == +expected
    assert {text for _, text in seen.of("h2")} == {one["client_id"] for one in clients}
    assert [text for _, text in seen.of("td")][:3] == ["wire", "1.0", "10.0.0.1"]


def test_a_failure_opens_on_the_frames_that_show_it() -> None:
    (client,) = clients = reports(failures=5)
    seen = page(clients)
    (failed,) = broken(client)
    assert [text for _, text in seen.of("summary")] == [one["words"] for one in failed["failures"]]
    frames = [text for _, text in seen.of("code")]
    assert len(frames) == sum(len(one["evidence"]) for one in failed["failures"])
    assert "ConsumerGroupHeartbeatRequest(" in frames[0]
    assert "and 2 times more" in [text for _, text in seen.of("p")]


def test_what_a_peer_calls_itself_is_text_and_nothing_else() -> None:
    clients = reports(HOSTILE, HOSTILE)
    text = "".join(html(clients))
    seen = Page(text)
    assert {tag for tag, _, _ in seen.elements} == set(TAGS.split())
    names = {name for _, attributes, _ in seen.elements for name in attributes}
    assert not [one for one in names if one.startswith("on")]
    shown = HOSTILE.replace("\u202e", "\\u202e").replace("\x00", "\\x00").replace("\x1b", "\\x1b")
    assert [one for _, one in seen.of("h2")] == [shown]
    assert text.isprintable() or set(re.findall(r"[^ -~]", text)) <= {"\n", "…"}
    (policy,) = (one["content"] for one, _ in seen.of("meta") if "http-equiv" in one)
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'")
    assert {one["href"] for one, _ in seen.of("a")} >= {"#client-1"}
    assert not re.search(r"url\(|@import", STYLE)


def test_a_long_name_is_cut() -> None:
    assert len("".join(html(reports("x" * 32_000)))) < len("".join(html(reports("x")))) + 10_000


def test_a_page_is_readable_without_eyes_and_without_a_mouse() -> None:
    seen = page([*reports("shop"), *reports("till")])
    assert [attributes.get("lang") for attributes, _ in seen.of("html")] == ["en"]
    assert all(attributes["scope"] in ("col", "row", "rowgroup") for attributes, _ in seen.of("th"))
    assert len(seen.of("caption")) == len(seen.of("table"))
    ids = [attributes["id"] for _, attributes, _ in seen.elements if "id" in attributes]
    assert len(set(ids)) == len(ids)
    labels = [attributes["aria-labelledby"] for _, attributes, _ in seen.elements if "aria-labelledby" in attributes]
    assert set(labels) <= set(ids)
    assert all(attributes["tabindex"] == "0" for attributes, _ in seen.of("div")), "what scrolls can be reached by keys"


def test_the_filter_is_a_choice_that_the_style_looks_at() -> None:
    seen = page(reports())
    choices = [attributes["value"] for attributes, _ in seen.of("input")]
    assert choices == list(SHOWN)
    classes = {one for attributes, _ in seen.of("tr") for one in (attributes.get("class") or "").split()}
    for one in choices[1:]:
        assert f"#show-{one}:checked) .rules tbody tr:not(.{one})" in STYLE
        assert one in classes


def luminance(colour: str) -> float:
    """Relative luminance, by WCAG 2.2."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in channels]
    return sum(share * one for share, one in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(a: str, b: str) -> float:
    light, dark = sorted((luminance(a), luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_of_a_page_has_enough_contrast(scheme: str) -> None:
    light, dark = STYLE.split("prefers-color-scheme: dark")
    found = dict(re.findall(r"--([a-z-]+): (#\w{6})", light if scheme == "light" else dark))
    assert len(found) == 13
    on_page = ("fore", "quiet", "link", "passed", "failed", "warning")
    pairs = [(one, back) for one in on_page for back in ("back", "head")]
    pairs += [(one, f"{one}-back") for one in ("passed", "failed", "warning")]
    assert [pair for pair in pairs if contrast(found[pair[0]], found[pair[1]]) < 4.5] == []


def test_a_page_is_made_in_pieces_with_one_for_each_client_before() -> None:
    pieces = list(html(reports("shop") * 3))
    assert pieces[:3] == [""] * 3
    assert len(pieces) >= 3 + 3
    assert "No client was examined." in "".join(html([]))


# badges


def drawn(clients: list[ClientReport]) -> tuple[str, list[str], set[str]]:
    """The title of a badge, its texts, and its colours."""
    space = "{http://www.w3.org/2000/svg}"
    root = ET.fromstring("".join(badge(clients)))
    title = root.findtext(f"{space}title")
    assert title is not None
    assert (root.tag, root.get("role"), root.get("aria-label")) == (f"{space}svg", "img", title)
    width = int(root.get("width", 0))
    texts = list(root.iter(f"{space}text"))
    assert all(int(one.get("x", 0)) + int(one.get("textLength", 0)) <= width for one in texts)
    return title, [one.text or "" for one in texts], {fill for one in root if (fill := one.get("fill"))}


def test_a_badge_of_a_client_has_its_software_and_what_it_kept() -> None:
    (good,), (bad,) = reports(failures=0), reports()
    title, texts, colours = drawn([good])
    assert texts == ["wire 1.0", f"{counts(good['rules'])['passed']} rules passed"]
    assert title == ": ".join(texts)
    assert colours == {GREEN, LABEL_COLOUR, "#fff"}
    passed = counts(bad["rules"])["passed"]
    assert drawn([bad])[1:] == (["wire 1.0", f"1 of {passed + 1} rules failed"], {RED, LABEL_COLOUR, "#fff"})
    broken(bad)[0]["severity"] = "warning"
    assert drawn([bad])[1:] == (["wire 1.0", f"{passed} rules passed, 1 warning"], {AMBER, LABEL_COLOUR, "#fff"})


def test_a_badge_of_several_clients_counts_each_rule_once() -> None:
    both = [*reports("good", failures=0), *reports("bad")]
    seen = {one["id"] for client in both for one in client["rules"] if one["outcome"] != "not exercised"}
    assert drawn(both)[1] == ["Kafka protocol", f"1 of {len(seen)} rules failed"]
    assert drawn([])[1] == ["Kafka protocol", "not examined"]
    together = Together()
    for client in (*both, *reports("good", failures=0)):
        together.add(client)
    (failed,) = (one for one in together.reports() if one["outcome"] == "failed")
    assert (failed["failed"], failed["failures"]) == (1, broken(both[1])[0]["failures"])


def test_a_badge_is_xml_whatever_a_peer_calls_itself() -> None:
    title, (label, _), _ = drawn(reports(HOSTILE, HOSTILE))
    assert label.startswith("<script>alert")
    assert "\x00" not in label
    assert title.startswith(label)
    assert len(drawn(reports(None, "x" * 10_000))[1][0]) == 40


def test_a_badge_has_enough_contrast() -> None:
    assert [one for one in (GREEN, AMBER, RED, GREY, LABEL_COLOUR) if contrast("#ffffff", one) < 4.5] == []
