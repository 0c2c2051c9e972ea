"""The codec and construct: its entry points, its contexts, and its types beside ours in both directions."""

from __future__ import annotations

import doctest
import io
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from construct import Byte, Const, Construct, GreedyBytes, GreedyRange, Int16ub, Int32ub, PrefixedArray, Struct
from ottla.protocol import codec, compose, messages, show
from ottla.protocol.compose import RecordValues, Stock
from ottla.protocol.errors import MalformedMessage, TooManyElements
from ottla.protocol.message import Member, Message
from ottla.protocol.streams import Room
from ottla.protocol.structs import Struct as Fields
from ottla.protocol.trees import tree
from ottla.protocol.wire import Array, Fixed, Records, String

from ..support.ask import batch

CLIENT = messages.ApiVersionsRequest(client_software_name="a", client_software_version="b")
POINT = Struct("x" / Int16ub, "y" / Int16ub)


@dataclass(slots=True, eq=False, repr=False)
class Drawing(Fields):
    name: Any = ""
    origin: Any = None
    points: Any = None
    unknown_tags: Any = None


DRAWING = Message(
    "Drawing v0",
    Drawing,
    [
        Member("name", String(True, False), ""),
        Member("origin", Stock(POINT), None),
        Member("points", Array(Stock(POINT), True, False), list),
    ],
    flexible=True,
)
DRAWN = Drawing("d", {"x": 1, "y": 2}, [{"x": 3, "y": 4}, {"x": 5, "y": 6}])
DRAWN_BYTES = b"\2d" + b"\0\1\0\2" + b"\3" + b"\0\3\0\4\0\5\0\6" + b"\0"


def test_the_example_in_the_documentation_works() -> None:
    found = doctest.testmod(compose)
    assert found.attempted > 10
    assert not found.failed


def test_the_checked_form_enters_construct_at_its_own_doors() -> None:
    data = codec.build_checked("ApiVersionsRequest", 3, CLIENT)
    with mock.patch.object(Construct, "parse_stream", autospec=True, side_effect=Construct.parse_stream) as parse:
        assert codec.parse_checked("ApiVersionsRequest", 3, data) == (CLIENT, len(data))
    with mock.patch.object(Construct, "build_stream", autospec=True, side_effect=Construct.build_stream) as build:
        assert codec.build_checked("ApiVersionsRequest", 3, CLIENT) == data
    assert (parse.call_count, build.call_count) == (1, 1)


@pytest.mark.parametrize("is_compiled", [False, True])
def test_messages_stand_in_stock_structs(is_compiled: bool) -> None:
    kind = Struct(
        "magic" / Const(b"K"), "clients" / PrefixedArray(Byte, tree("ApiVersionsRequest", 3)), "end" / Int32ub
    )
    kind = kind.compile() if is_compiled else kind
    value = {"magic": b"K", "clients": [CLIENT, CLIENT], "end": 7}
    data = kind.build(value)
    assert data == b"K\2" + 2 * bytes(codec.build("ApiVersionsRequest", 3, CLIENT)) + b"\0\0\0\7"
    found = kind.parse(data)
    assert (found.clients, found.end) == ([CLIENT, CLIENT], 7)


def test_stock_structs_stand_in_messages_in_both_forms() -> None:
    read, write = DRAWING.reader(), DRAWING.writer()
    assert DRAWING.build(DRAWN) == bytes(write(DRAWN, bytearray(), [])) == DRAWN_BYTES
    checked, (emitted, end) = DRAWING.parse(DRAWN_BYTES), read(DRAWN_BYTES, 0)
    assert end == len(DRAWN_BYTES)
    for found in (checked, emitted):
        assert (found.name, found.origin.y, [point.x for point in found.points]) == ("d", 2, [3, 5])


@pytest.mark.parametrize(
    ("kind", "data", "path"),
    [
        (DRAWING, b"\2d\0\1\0", "origin"),
        (DRAWING, b"\2d\0\1\0\2\2\0\3\0", r"points\[0\]"),
        (Struct("in" / Struct("drawing" / DRAWING)), b"\5d", r"in\.drawing\.name"),
        (tree("MetadataRequest", 1), b"\0\0\0\1\0\5abc", r"topics\[0\]\.name"),
    ],
)
def test_errors_name_the_field_through_types_of_both_kinds(kind: Construct, data: bytes, path: str) -> None:
    with pytest.raises(MalformedMessage, match=rf"^{path}: "):
        kind.parse(data)


def test_a_value_that_a_stock_type_cannot_build_is_refused_with_its_path() -> None:
    with pytest.raises(MalformedMessage, match=r"^origin: "):
        DRAWING.build(Drawing("d", {"x": 70_000, "y": 0}, []))


def test_a_context_bounds_the_elements_of_all_messages_within() -> None:
    kind = Struct("lists" / Array(Array(Fixed("b"), False, False), False, False))
    data = kind.build({"lists": [[1, 2], [3]]})
    assert kind.parse(data, room=Room(5)).lists == [[1, 2], [3]] == kind.parse(data).lists
    with pytest.raises(TooManyElements):
        kind.parse(data, room=Room(4))


def test_messages_are_read_from_files(tmp_path: Path) -> None:
    request = messages.MetadataRequest(topics=[messages.MetadataRequest.MetadataRequestTopic(name="orders")])
    path = tmp_path / "requests"
    path.write_bytes(2 * bytes(codec.build("MetadataRequest", 1, request)))
    assert GreedyRange(tree("MetadataRequest", 1)).parse_file(path) == [request, request]


def test_values_of_records_are_read_with_a_struct() -> None:
    data = batch(b"\0\1\0\2", b"\0\3\0\4") + batch(b"\0\5\0\6")
    assert [(p.x, p.y) for p in RecordValues(GreedyBytes, POINT).parse(data)] == [(1, 2), (3, 4), (5, 6)]
    field = RecordValues(Records(True, True), POINT)
    assert [p and p.y for p in field.parse(field.build([{"x": 1, "y": 2}, None]))] == [2, None]
    assert field.parse(field.build([])) == field.parse(b"\0") == []


def test_parts_that_are_no_bytes_need_a_list_in_the_context() -> None:
    class Slice:
        def __len__(self) -> int:
            return 3

    part, parts, kind = Slice(), [], Records(False, False)  # type: ignore[var-annotated]
    with pytest.raises(MalformedMessage, match="build_parts"):
        kind.build(part)
    kind.build_stream(part, io.BytesIO(), parts=parts)
    assert parts == [(4, part)]


def test_a_schema_is_shown_with_its_structure_and_its_functions() -> None:
    command = [sys.executable, "-m", "ottla.protocol.show", "FetchRequest", "16"]
    text = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    assert text.startswith("FetchRequest v16 (flexible)\n    max_wait_ms: int32\n")
    assert "        partitions: compact array of struct FetchPartition\n            partition: int32\n" in text
    assert "    cluster_id: compact nullable string  tag 0\n" in text
    assert "\ndef read(buf, pos" in text
    assert "\ndef write(obj, out, parts):\n" in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], show.USAGE),
        (["FetchRequest", "new"], show.USAGE),
        (["Fetch", "1"], "no schema is called Fetch"),
        (["FetchRequest", "99"], "FetchRequest has no version 99, but 4 to 18"),
    ],
)
def test_what_cannot_be_shown_is_said(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert show.main(arguments) == 2
    assert capsys.readouterr().err == f"{words}\n"
