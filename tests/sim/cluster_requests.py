"""Requests about groups, transactions and the cluster in the simulator of security: what each may do, and what its
reply must be.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from ottla.coordinator.security.acls import ANYONE, CLUSTER_NAME, SUPPORTED, WILDCARD, Acl, PatternType, Permission
from ottla.coordinator.security.acls import Operation as O
from ottla.coordinator.security.acls import ResourceType as R
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors as E

from ..support.acls import creations
from .limits_model import CLIENT, CLIENT_ID, MUTATIONS, RATES, TIME, USER, Entity
from .secured_world import (
    GROUPS,
    HOSTS,
    ITERATIONS,
    MECHANISMS,
    SALT,
    TOPICS,
    TRANSACTIONS,
    USERS,
    Connection,
    salted,
)

DENIED, ABSENT = int(E.TOPIC_AUTHORIZATION_FAILED), int(E.UNKNOWN_TOPIC_OR_PARTITION)
NO_GROUP, NO_CLUSTER = int(E.GROUP_AUTHORIZATION_FAILED), int(E.CLUSTER_AUTHORIZATION_FAILED)
NO_TRANSACTION = int(E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
UNKNOWN_GROUP = int(E.GROUP_ID_NOT_FOUND)
PREFIXES = ("a", "alpha-", "alpha-one", "be", "crew-", "pay-", "squad")
NAMES = {R.TOPIC: TOPICS, R.GROUP: GROUPS, R.TRANSACTIONAL_ID: TRANSACTIONS}
LIMITS = {**dict.fromkeys(RATES.values(), (200, 1000, 3000)), MUTATIONS: (0.5, 2), TIME: (0.5, 50)}


def _same(c: Connection, api: str, found: object, wanted: object) -> None:
    assert found == wanted, f"{api} of {c.principal}: {found}, not {wanted}"


# groups


def commit(c: Connection, chance: random.Random) -> None:
    group, names, offset = chance.choice(GROUPS), chance.sample(TOPICS, 2), chance.randint(0, 99)
    r = m.OffsetCommitRequest
    parts = [r.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")]
    topics = [r.OffsetCommitRequestTopic(name=name, partitions=parts) for name in names]
    reply = c.ask("OffsetCommit", 9, r(group_id=group, topics=topics))
    wanted = {
        name: NO_GROUP
        if not c.may(O.READ, R.GROUP, group)
        else DENIED
        if not c.may(O.READ, R.TOPIC, name)
        else 0
        if name in c.expected.topics
        else ABSENT
        for name in names
    }
    _same(c, "OffsetCommit", {t.name: t.partitions[0].error_code for t in reply.topics}, wanted)
    c.expected.offsets[group].update({name: offset for name, code in wanted.items() if code == 0})


def committed(c: Connection, chance: random.Random) -> None:
    names = chance.sample(TOPICS, 2) if chance.random() < 0.5 else None
    r = m.OffsetFetchRequest
    topics = None if names is None else [r.OffsetFetchRequestTopics(name=n, partition_indexes=[0]) for n in names]
    reply = c.ask(
        "OffsetFetch", 9, r(groups=[r.OffsetFetchRequestGroup(group_id=group, topics=topics) for group in GROUPS])
    )
    for group in reply.groups:
        allowed = c.may(O.DESCRIBE, R.GROUP, group.group_id)
        _same(c, f"OffsetFetch of {group.group_id}", group.error_code, 0 if allowed else NO_GROUP)
        offsets = c.expected.offsets[group.group_id]
        if not allowed:
            continue
        visible = {name for name in names or offsets if c.may(O.DESCRIBE, R.TOPIC, name)}
        wanted = {name: (offsets.get(name, -1), 0) if name in visible else (-1, DENIED) for name in names or visible}
        found = {t.name: (t.partitions[0].committed_offset, t.partitions[0].error_code) for t in group.topics}
        _same(c, f"OffsetFetch of {group.group_id}", found, wanted)


def delete_offsets(c: Connection, chance: random.Random) -> None:
    group, names, r = chance.choice(GROUPS), chance.sample(TOPICS, 2), m.OffsetDeleteRequest
    parts = [r.OffsetDeleteRequestPartition(partition_index=0)]
    topics = [r.OffsetDeleteRequestTopic(name=name, partitions=parts) for name in names]
    reply = c.ask("OffsetDelete", 0, r(group_id=group, topics=topics))
    if not c.may(O.DELETE, R.GROUP, group):
        _same(c, "OffsetDelete", (reply.error_code, reply.topics), (NO_GROUP, []))
        return
    offsets = c.expected.offsets[group]
    wanted = {name: 0 if name in c.expected.topics else ABSENT for name in names}
    wanted |= {name: DENIED for name in names if not c.may(O.READ, R.TOPIC, name)}
    if not offsets and reply.error_code == UNKNOWN_GROUP:
        return
    _same(c, "OffsetDelete", {t.name: t.partitions[0].error_code for t in reply.topics}, wanted)
    for name in [name for name, code in wanted.items() if code == 0]:
        offsets.pop(name, None)


def delete_groups(c: Connection, chance: random.Random) -> None:
    names = chance.sample(GROUPS, 2)
    reply = c.ask("DeleteGroups", 2, m.DeleteGroupsRequest(groups_names=names))
    found = {one.group_id: one.error_code for one in reply.results}
    for name in names:
        offsets = c.expected.offsets[name]
        if not c.may(O.DELETE, R.GROUP, name):
            _same(c, "DeleteGroups", found[name], NO_GROUP)
        elif offsets:
            _same(c, "DeleteGroups", found[name], 0)
            offsets.clear()
        else:
            assert found[name] in (0, UNKNOWN_GROUP)


def list_groups(c: Connection, chance: random.Random) -> None:
    found = {one.group_id for one in c.ask("ListGroups", 4, m.ListGroupsRequest()).groups}
    every = c.may(O.DESCRIBE, R.CLUSTER)
    visible = {name for name in GROUPS if every or c.may(O.DESCRIBE, R.GROUP, name)}
    assert found & set(GROUPS) <= visible, f"ListGroups shows {found} to {c.principal}"
    missing = {name for name in visible if c.expected.offsets[name]} - found
    assert not missing, f"ListGroups does not show {missing} to {c.principal}"


def describe_groups(c: Connection, chance: random.Random) -> None:
    request = m.DescribeGroupsRequest(groups=list(GROUPS), include_authorized_operations=True)
    for one in c.ask("DescribeGroups", 5, request).groups:
        allowed = c.may(O.DESCRIBE, R.GROUP, one.group_id)
        _same(c, f"DescribeGroups of {one.group_id}", one.error_code == NO_GROUP, not allowed)
        bits = c.expected.rights.bits(c.principal, c.host, R.GROUP, one.group_id)
        _same(c, f"DescribeGroups of {one.group_id}", one.authorized_operations, bits if allowed else -(2**31))


def begin_groups(c: Connection, chance: random.Random) -> None:
    """Has the topic of the coordinators made, as the first question for one does."""
    c.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=["some"]))


def begin_transactions(c: Connection, chance: random.Random) -> None:
    c.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=1, coordinator_keys=["some"]))


def find(c: Connection, chance: random.Random) -> None:
    type_, kind, names, code = chance.choice(
        ((0, R.GROUP, GROUPS, NO_GROUP), (1, R.TRANSACTIONAL_ID, TRANSACTIONS, NO_TRANSACTION))
    )
    request = m.FindCoordinatorRequest(key_type=type_, coordinator_keys=list(names))
    reply = c.ask("FindCoordinator", 4, request)
    wanted = {name: 0 if c.may(O.DESCRIBE, kind, name) else code for name in names}
    _same(c, "FindCoordinator", {one.key: one.error_code for one in reply.coordinators}, wanted)


# transactions


def init_producer(c: Connection, chance: random.Random) -> None:
    name = chance.choice((None, *TRANSACTIONS))
    reply = c.ask("InitProducerId", 4, m.InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000))
    if name is not None:
        wanted = 0 if c.may(O.WRITE, R.TRANSACTIONAL_ID, name) else NO_TRANSACTION
    else:
        any_topic = c.expected.rights.allow_any(c.principal, c.host, O.WRITE, R.TOPIC)
        wanted = 0 if any_topic or c.may(O.IDEMPOTENT_WRITE, R.CLUSTER) else NO_CLUSTER
    _same(c, f"InitProducerId of {name}", reply.error_code, wanted)
    if name is not None and wanted == 0:
        c.expected.transactions.add(name)


def list_transactions(c: Connection, chance: random.Random) -> None:
    visible = {name for name in TRANSACTIONS if c.may(O.DESCRIBE, R.TRANSACTIONAL_ID, name)}
    listed = c.ask("ListTransactions", 1, m.ListTransactionsRequest()).transaction_states
    _same(c, "ListTransactions", {one.transactional_id for one in listed}, visible & c.expected.transactions)


def describe_transactions(c: Connection, chance: random.Random) -> None:
    visible = {name for name in TRANSACTIONS if c.may(O.DESCRIBE, R.TRANSACTIONAL_ID, name)}
    request = m.DescribeTransactionsRequest(transactional_ids=list(TRANSACTIONS))
    described = c.ask("DescribeTransactions", 0, request).transaction_states
    found = {one.transactional_id: one.error_code for one in described}
    there = c.expected.transactions
    absent = int(E.TRANSACTIONAL_ID_NOT_FOUND)
    wanted = {name: 0 if name in there else absent for name in TRANSACTIONS if name in visible}
    _same(c, "DescribeTransactions", found, dict.fromkeys(TRANSACTIONS, NO_TRANSACTION) | wanted)


# the cluster


def cluster(c: Connection, chance: random.Random) -> None:
    reply = c.ask("DescribeCluster", 1, m.DescribeClusterRequest(include_cluster_authorized_operations=True))
    bits = c.expected.rights.bits(c.principal, c.host, R.CLUSTER, CLUSTER_NAME)
    shown = bits if c.may(O.DESCRIBE, R.CLUSTER) else 0
    _same(c, "DescribeCluster", (reply.error_code, reply.cluster_authorized_operations), (0, shown))


def random_acl(chance: random.Random) -> Acl:
    """An entry for one of the resources, principals and hosts of the simulator."""
    kind = chance.choice((R.TOPIC, R.TOPIC, R.TOPIC, R.GROUP, R.CLUSTER, R.TRANSACTIONAL_ID))
    pattern = PatternType.LITERAL
    if kind == R.CLUSTER:
        name = CLUSTER_NAME
    elif chance.random() < 0.35:
        pattern, name = PatternType.PREFIXED, chance.choice(PREFIXES)
    else:
        name = chance.choice((*NAMES[kind], WILDCARD))
    return Acl(
        kind,
        name,
        pattern,
        chance.choice((*(f"User:{user}" for user in USERS), ANYONE)),
        chance.choice((WILDCARD, WILDCARD, WILDCARD, *HOSTS, "10.0.0.0/8")),
        chance.choice((O.ALL, O.READ, O.WRITE, *SUPPORTED[kind])),
        chance.choice((Permission.ALLOW, Permission.ALLOW, Permission.ALLOW, Permission.DENY)),
    )


def create_acls(c: Connection, chance: random.Random) -> None:
    acls = [random_acl(chance) for _ in range(chance.randint(1, 4))]
    may_alter = c.may(O.ALTER, R.CLUSTER)
    reply = c.ask("CreateAcls", 3, creations(acls))
    _same(c, "CreateAcls", {one.error_code for one in reply.results}, {0 if may_alter else NO_CLUSTER})
    if may_alter:
        c.expected.rights.acls.update(acls)


def delete_acls(c: Connection, chance: random.Random) -> None:
    before = c.expected.rights.acls
    doomed = set(chance.sample(sorted(before), min(len(before), chance.randint(1, 3))))
    f = m.DeleteAclsRequest
    filters = [
        f.DeleteAclsFilter(
            resource_type_filter=one.resource_type,
            resource_name_filter=one.name,
            pattern_type_filter=one.pattern_type,
            principal_filter=one.principal,
            host_filter=one.host,
            operation=one.operation,
            permission_type=one.permission,
        )
        for one in sorted(doomed)
    ]
    may_alter = c.may(O.ALTER, R.CLUSTER)
    reply = c.ask("DeleteAcls", 3, f(filters=filters))
    codes = [(one.error_code, len(one.matching_acls)) for one in reply.filter_results]
    _same(c, "DeleteAcls", codes, [(0, 1) if may_alter else (NO_CLUSTER, 0)] * len(doomed))
    if may_alter:
        before -= doomed


def describe_acls(c: Connection, chance: random.Random) -> None:
    everything = m.DescribeAclsRequest(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    reply = c.ask("DescribeAcls", 3, everything)
    found = {
        Acl(r.resource_type, r.resource_name, r.pattern_type, a.principal, a.host, a.operation, a.permission_type)
        for r in reply.resources
        for a in r.acls
    }
    allowed = c.may(O.DESCRIBE, R.CLUSTER)
    _same(c, "DescribeAcls", reply.error_code, 0 if allowed else NO_CLUSTER)
    _same(c, "DescribeAcls", found, c.expected.rights.acls if allowed else set())


def alter_quotas(c: Connection, chance: random.Random) -> None:
    a, limits = m.AlterClientQuotasRequest, c.expected.limits.values
    users, clients = (USER, chance.choice((*USERS, None))), (CLIENT, chance.choice((CLIENT_ID, None)))
    entity: Entity = chance.choice(((users,), (clients,), (clients, users)))
    key = chance.choice(sorted(LIMITS))
    value = None if (entity, key) in limits and chance.random() < 0.7 else float(chance.choice(LIMITS[key]))
    op = a.OpData(key=key, value=value or 0.0, remove=value is None)
    entry = a.EntryData(entity=[a.EntityData(entity_type=t, entity_name=n) for t, n in entity], ops=[op])
    may_alter = c.may(O.ALTER_CONFIGS, R.CLUSTER)
    reply = c.ask("AlterClientQuotas", 1, a(entries=[entry]))
    _same(c, "AlterClientQuotas", [one.error_code for one in reply.entries], [0 if may_alter else NO_CLUSTER])
    if may_alter:
        limits.pop((entity, key), None)
        if value is not None:
            limits[entity, key] = value


def describe_quotas(c: Connection, chance: random.Random) -> None:
    reply = c.ask("DescribeClientQuotas", 1, m.DescribeClientQuotasRequest(components=[], strict=False))
    found = {
        (tuple(sorted((one.entity_type, one.entity_name) for one in entry.entity)), value.key): value.value
        for entry in reply.entries or ()
        for value in entry.values
    }
    allowed = c.may(O.DESCRIBE_CONFIGS, R.CLUSTER)
    _same(c, "DescribeClientQuotas", reply.error_code, 0 if allowed else NO_CLUSTER)
    _same(c, "DescribeClientQuotas", found, c.expected.limits.values if allowed else {})


def alter_credentials(c: Connection, chance: random.Random) -> None:
    r, passwords = m.AlterUserScramCredentialsRequest, c.expected.passwords
    user, mechanism = chance.choice(USERS), chance.choice(sorted(MECHANISMS))
    number, digest = MECHANISMS[mechanism]
    password = f"password {chance.randint(0, 3)}"
    may_alter = c.may(O.ALTER, R.CLUSTER)
    if (user, number) in passwords and chance.random() < 0.4:
        request = r(deletions=[r.ScramCredentialDeletion(name=user, mechanism=number)])
        password = ""
    else:
        up = r.ScramCredentialUpsertion(
            name=user, mechanism=number, iterations=ITERATIONS, salt=SALT, salted_password=salted(digest, password)
        )
        request = r(upsertions=[up])
    reply = c.ask("AlterUserScramCredentials", 0, request)
    codes = [one.error_code for one in reply.results]
    _same(c, "AlterUserScramCredentials", codes, [0 if may_alter else NO_CLUSTER])
    if may_alter:
        passwords.pop((user, number), None)
        if password:
            passwords[user, number] = password


def describe_credentials(c: Connection, chance: random.Random) -> None:
    reply = c.ask("DescribeUserScramCredentials", 0, m.DescribeUserScramCredentialsRequest(users=None))
    found = {(one.user, info.mechanism) for one in reply.results for info in one.credential_infos}
    allowed = c.may(O.DESCRIBE, R.CLUSTER)
    _same(c, "DescribeUserScramCredentials", reply.error_code, 0 if allowed else NO_CLUSTER)
    _same(c, "DescribeUserScramCredentials", found, set(c.expected.passwords) if allowed else set())


REQUESTS: tuple[Callable[[Connection, random.Random], None], ...] = (
    *(commit, commit, committed, committed, delete_offsets, delete_groups),
    *(list_groups, describe_groups, find, init_producer, list_transactions, describe_transactions),
    *(cluster, create_acls, delete_acls, describe_acls, alter_quotas, describe_quotas),
    *(alter_credentials, describe_credentials),
)
CHANGES = (create_acls, create_acls, create_acls, delete_acls, delete_acls, alter_quotas, alter_credentials)
"""What the administrator does most of the time."""
