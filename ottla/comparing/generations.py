"""Generations of classic groups: which one of broker B stands for one of A, and what its members are told.

Each broker completes a generation by itself, when the members that it knows have joined, or after a delay. So B may
complete one with fewer members than A, and the member that leads may be another one: which of several leads is each
broker's choice. A generation of A is a round here. Its members join B again (as after a heartbeat that says
REBALANCE_IN_PROGRESS) until a generation of B has the same members. What A's leader assigns is what B's leader assigns,
whoever that is.

Only the reply to a member itself says which id of B stands for A's: a list of members names several, and a leader may
be another one.
"""

from __future__ import annotations

from typing import Final

from ..protocol import messages as m
from ..protocol.structs import copied
from .identities import MEMBER, MEMBER_EPOCH, Identities
from .latest import Latest

GROUPS_MAX: Final = 10_000
ROUNDS_MAX: Final = 8
"""Generations of a group that are kept: a member that is late asks for the one before."""
Joined = m.JoinGroupResponse


class Round:
    """A generation of A. `leader`: of A. `members`: in ids of A; None until A has told its leader who they are.
    `assignments`: of A's leader, once it has sent them.
    """

    def __init__(self, group: str, generation: int, identities: Identities) -> None:
        self._group = group
        self.generation = generation
        self._identities = identities
        self.leader = ""
        self.members: frozenset[str] | None = None
        self.assignments: list[m.SyncGroupRequest.SyncGroupRequestAssignment] | None = None
        self.is_over = False  # B has followed, or was given up
        self._replies: dict[str, Joined] = {}  # B's last one to each member, by the id of A
        self._leading: tuple[str, Joined] | None = None  # the id of A of the member that leads at B, and B's reply

    def take_a(self, reply: Joined) -> None:
        """Notes a reply of A."""
        self.leader = reply.leader
        if reply.member_id == reply.leader:
            self.members = frozenset(one.member_id for one in reply.members)

    def take_b(self, a: Joined, b: Joined) -> None:
        """Notes B's reply to the member to which A has replied `a`, and learns its ids."""
        context = {"group_id": self._group, "member_id": a.member_id}
        self._identities.match(MEMBER, {}, a.member_id, b.member_id)
        self._identities.match(MEMBER_EPOCH, context, a.generation_id, b.generation_id)
        self._replies[a.member_id] = b
        if b.member_id == b.leader:
            self._leading = a.member_id, b

    def join_again(self, member: str) -> None:
        """The member, of A, joins B again: what B has replied before does not count any more."""
        self._replies.pop(member, None)

    @property
    def is_whole(self) -> bool:
        """Whether a generation of B has the same members, and all of them have been told."""
        if self.members is None or self._leading is None or not self._replies.keys() >= self.members:
            return False
        listed = self._leading[1]
        generations = {self._replies[one].generation_id for one in self.members}
        there = {self._identities.of_a(MEMBER, {}, one.member_id) for one in listed.members}
        return generations == {listed.generation_id} and there == self.members

    @property
    def other_leader(self) -> str:
        """The id of A of the member that leads at B; empty if A's leader does, or none is known."""
        found = self._leading[0] if self._leading is not None else ""
        return "" if found == self.leader else found

    def comparable(self, a: Joined, b: Joined) -> Joined:
        """B's reply as if the member that leads at A led at B. The same object where it does, or where what B says of
        its leader is not so: the leader is the one that was told the list of members.
        """
        if self._leading is None or not self.other_leader or not self._identities.knows_a(MEMBER, self.leader):
            return b
        listed = self._leading[1]
        is_leading = b.member_id == listed.member_id
        if (b.generation_id, b.leader, bool(b.members)) != (listed.generation_id, listed.member_id, is_leading):
            return b
        made = copied(b)
        made.leader = str(self._identities.of_b(MEMBER, {}, self.leader))
        is_leading = a.member_id == self.leader
        made.members = listed.members if is_leading else []
        made.skip_assignment = is_leading and listed.skip_assignment
        return made

    def assign(self, request: m.SyncGroupRequest) -> None:
        """Changes a request, in ids of A: the leader of B assigns what that of A has assigned."""
        if self.other_leader and self.assignments is not None:
            is_leading = request.member_id == self.other_leader
            request.assignments = copied(self.assignments) if is_leading else []

    def on_behalf(self, request: m.SyncGroupRequest) -> m.SyncGroupRequest | None:
        """The SyncGroup of B's leader, which is due at B when that of A's leader is; None if the same member leads."""
        if request.member_id != self.leader or not self.other_leader:
            return None
        made = copied(request)
        made.member_id, made.group_instance_id = self.other_leader, None
        self.assign(made)
        return made


class Rounds:
    """The latest generations of each group."""

    def __init__(self, identities: Identities) -> None:
        self._identities = identities
        self._rounds: Latest[str, Latest[int, Round]] = Latest(GROUPS_MAX)

    def take_a(self, group: str, reply: Joined) -> Round | None:
        """The round of a reply of A; None if A has refused, or is one that assigns by itself."""
        if reply.error_code or not reply.leader:
            return None
        of_group = self._rounds.get(group)
        if of_group is None:
            of_group = Latest(ROUNDS_MAX)
        self._rounds[group] = of_group
        found = of_group.get(reply.generation_id) or Round(group, reply.generation_id, self._identities)
        of_group[reply.generation_id] = found
        found.take_a(reply)
        return found

    def of(self, request: m.SyncGroupRequest) -> Round | None:
        """The round of a request."""
        of_group = self._rounds.get(request.group_id)
        return None if of_group is None else of_group.get(request.generation_id)

    def take_request(self, request: m.SyncGroupRequest) -> bool:
        """Notes what A's leader assigns, before A answers any follower; returns whether the request is the leader's."""
        found = self.of(request)
        if found is None or request.member_id != found.leader:
            return False
        found.assignments = request.assignments
        return True
