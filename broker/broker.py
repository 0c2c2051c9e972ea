"""The wiring of a broker: creates, starts and stops its parts in order, and connects those that follow the metadata.

Each part gets only the objects that it uses; only API handlers, the lab and the server have the whole broker.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator
from copy import copy
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from ..coordinator.metadata.state import MetadataState, Topic
from ..coordinator.metadata.tokens import SWEPT_AT_ONCE, sweep
from ..coordinator.quota.rates import Windows
from ..coordinator.security.authorizer import Authorizer
from ..storage.files import Files
from . import bugs
from .client_quotas import ClientQuotas, QuotaLimits
from .clock import Schedule
from .config.config import Config
from .config.nodes import Node, Nodes
from .connection_rates import RATE_MAX, ConnectionRates
from .controller.amendments import Amendments
from .controller.controller import MetadataController
from .controller.cordons import Cordons
from .controller.cut_off import UnreachedController
from .controller.in_sync import InSync
from .controller.node_directories import NodeDirectories
from .controller.node_lives import NodeLives
from .controller.producer_ids import ProducerIds
from .group.coordinators import GroupCoordinators
from .later import Later
from .limits import Limits
from .loggers import Loggers
from .metrics import Metrics
from .repeated import KeptFrames
from .replica.appender import Appender
from .replica.directories import LogDirectories, LogDirectory
from .replica.high_watermarks import HighWatermarks
from .replica.partition import Partition
from .replica.partitions import Partitions, PartitionsOfNode
from .replica.replica_manager import ReplicaManager
from .replica.stale_leaders import StaleAppender
from .security.authorization import Audit
from .security.authorizing import AclFollower, authorizer_of
from .security.tokens import tokens_of
from .settings import Settings
from .shards.host import ShardHost
from .shards.hosts import Services, ShardHosts
from .share.coordinators import ShareCoordinators
from .share.share_partition_manager import SharePartitionManager
from .sparse_log import SparseLog
from .telemetry.client_metrics_manager import ClientMetricsManager
from .tls.listeners import tls_listeners
from .transaction.coordinators import TransactionCoordinators
from .turn import Turn
from .watermark_policies import Policies

if TYPE_CHECKING:
    from .security.sasl_listener import SaslListener
    from .security.token_issuer import TokenIssuer
    from .telemetry.pushed_metrics import PushedMetrics
    from .zookeeper.zookeeper import ZooKeeper

logger = logging.getLogger("ottla.kafka.server.BrokerServer")


class Broker:
    """One broker process. Raises ConfigError for an assignor that cannot be loaded, or a listener's TLS.

    `zookeeper`: where it is registered, if it is.
    """

    zookeeper: ZooKeeper | None = None
    token_issuer: TokenIssuer | None = None

    def __init__(self, config: Config, schedule: Schedule, files: Files, new_id: Callable[[], bytes]) -> None:
        self.config = config
        self.schedule = schedule
        self.metrics = Metrics()
        self.sparsely = SparseLog(schedule)
        self.limits = Limits(self.sparsely)
        # the broker's only source of randomness; everything else follows from its input
        self.chance = random.Random(new_id())
        self.policies = Policies()
        self.policies.configure(config["ottla.high.watermark"], config["ottla.isr.size"])
        self.image = MetadataState()
        self.cluster_id = ""
        self.nodes = nodes = Nodes(config)
        self.turn = turn = Turn(schedule)
        self.settings = settings = Settings(config, self.image)
        self.tls = tls_listeners(config, settings.of_listener)
        self.log_directories = LogDirectories(turn, config, files, new_id, self.metrics, self.sparsely, nodes.by_id)
        self.metadata = MetadataController(turn, settings, self.log_directories, self.policies, nodes, self.chance)
        self.partitions = Partitions(self.image, self.log_directories)
        self.replicas = ReplicaManager(
            turn, settings, self.log_directories, self.partitions, self.policies, self.metrics, nodes
        )
        self.high_watermarks = HighWatermarks(turn, self.replicas.flusher, self.chance)
        self.in_sync = InSync(turn, settings, self.metadata, self.partitions, nodes)
        self.node_directories = NodeDirectories(self.metadata, self.replicas, nodes)
        self.node_lives = NodeLives(turn, settings, self.metadata, self.replicas.leaders, self.in_sync, nodes)
        self.appender = Appender(
            turn, settings, self.partitions, self.high_watermarks, self.replicas.reopen, self.limits
        )
        services = Services(turn, settings, self.partitions, self.appender, self.metadata, {}, self.limits)
        self.groups = GroupCoordinators(services, new_id, self.chance)
        self.share_states = ShareCoordinators(services)
        self.producer_ids = ProducerIds(turn, self.metadata, config.node_id)
        self.transactions = TransactionCoordinators(services, self.producer_ids, self.groups)
        families: tuple[ShardHosts[Any], ...] = (self.groups, self.share_states, self.transactions)
        self.coordinators = {one.topic_name: one for one in families}
        self.share_partitions = SharePartitionManager(
            turn, settings, self.partitions, self.appender, self.metadata, self.share_states
        )
        self.tokens = tokens_of(config, turn, self.image, new_id)
        self.sasl = self._sasl_listeners(new_id)
        self.quotas, self.connection_rates = self._quotas()
        self.client_metrics = ClientMetricsManager(turn, self.image, self.limits, config["telemetry.max.bytes"], new_id)
        self.pushed_metrics = self._pushed_metrics()
        self.authorizer: Authorizer | None = None
        self.acls: AclFollower | None = None
        self.audit: Audit | None = None
        self.loggers = Loggers()
        self._views: dict[int, Broker] = {}  # by node
        self.node_lives.views = self
        self.kept_frames = KeptFrames()
        self.extensions: dict[str, Any] = {}  # state of API families, made on first use
        turn.move = self.high_watermarks.move
        self.log_directories.offline = self._directory_failed
        self.replicas.opened, self.replicas.closed = self._opened, self._closed
        self._follow_metadata()
        self.groups.check()
        authorizer = authorizer_of(config)
        if authorizer is not None:
            self.authorize_with(authorizer)

    def _follow_metadata(self) -> None:
        commits = self.metadata.commits
        commits.shown = self.partitions.pieces.changed
        self.metadata.watch(self.partitions.pieces.forget_removed)
        commits.rested = self.replicas.go_on_opening
        self.replicas.may_open = lambda: not commits.is_busy
        self.high_watermarks.caught_up = self.in_sync.caught_up
        self.replicas.homes.assign = self.metadata.assign_directories
        self.replicas.leaders.left, self.replicas.leaders.forgotten = self._left, self._forgotten
        self.high_watermarks.catch_up = self.replicas.catching_up.go_on
        for follows in (
            self.settings,
            self.replicas,
            Cordons(self.metadata, self.settings, self.log_directories, self.nodes),
            Amendments(self.metadata),
            self.groups,
            self.share_states,
            self.share_partitions,
            self.quotas.limits,
            self.connection_rates,
            self.client_metrics,
        ):
            self.metadata.watch(follows.metadata_changed)
        if self.tokens is not None:
            self.metadata.watch(self.tokens.metadata_changed)

    def _sasl_listeners(self, new_id: Callable[[], bytes]) -> dict[str, SaslListener]:
        """Makes the SASL mechanisms of the listeners that ask for them. Raises ConfigError."""
        config = self.config
        names = [one.name for one in config.listeners if config.security_protocol(one.name).has_sasl]
        if not names:
            return {}
        from .config.jaas_file import load_sections
        from .security.guesses import Guesses
        from .security.sasl import SaslServices
        from .security.sasl_listener import sasl_listener
        from .security.token_issuer import TokenIssuer

        guesses = Guesses(config["ottla.oauth.failures.max"], lambda: self.schedule.work_ns() // 1_000_000)
        self.token_issuer = TokenIssuer(config.users, self.turn.now_ms, new_id, guesses)
        sections = cache(partial(load_sections, config))  # the file is read where a listener needs it
        services = SaslServices(self.turn, self.image, new_id, config.users, sections, self.tokens, self.token_issuer)
        return {name: sasl_listener(config, name, services) for name in names}

    def _pushed_metrics(self) -> PushedMetrics | None:
        """What clients push; None if the broker takes no metrics of clients."""
        if not self.config.takes_client_metrics:
            return None
        from .telemetry.pushed_metrics import PushedMetrics

        pushed = PushedMetrics(self.turn, self.limits, self.config["ottla.client.metrics.series.max"])
        self.client_metrics.receiver = pushed
        return pushed

    def _quotas(self) -> tuple[ClientQuotas, ConnectionRates]:
        config = self.config
        windows = Windows(config["quota.window.num"], config["quota.window.size.seconds"] * 1000)
        of_mutations = config["controller.quota.window.num"], config["controller.quota.window.size.seconds"] * 1000
        quotas = ClientQuotas(self.schedule, QuotaLimits(self.image), windows, Windows(*of_mutations))
        listeners = [one.name for one in config.listeners]
        between_brokers = config["inter.broker.listener.name"] or config["security.inter.broker.protocol"]
        return quotas, ConnectionRates(
            self.turn, self.image, windows, listeners, self._connection_rate, between_brokers.upper()
        )

    def _connection_rate(self, listener: str | None) -> int:
        """Returns how many connections a listener of this name, or the whole broker, takes per second."""
        key = "max.connection.creation.rate"
        if listener is None:
            return int(self.settings.value(key))
        own = self.settings.of_listener(listener).own(key)
        return RATE_MAX if own is None else int(own)

    def authorize_with(self, authorizer: Authorizer) -> None:
        """Lets an authorizer decide who may do what, by the access control entries of the metadata."""
        self.acls = AclFollower(authorizer, self.image)
        self.acls.load()
        self.metadata.watch(self.acls.metadata_changed)
        self.authorizer = authorizer

    def _sweep_tokens(self) -> None:
        """Removes the delegation tokens that have expired, and goes on at once if there are more."""
        later = self.metadata.submit(lambda: sweep(self.metadata.controller, self.schedule.now_ms()))

        def done(swept: Later[int]) -> None:
            if swept.result:
                logger.info("%d expired delegation tokens were removed", swept.result)
            if swept.result == SWEPT_AT_ONCE and not self.turn.stopped:
                self.turn.soon(self._sweep_tokens)

        later.when_done(done)

    # start and stop

    def start(self) -> None:
        """Opens the directories and the metadata, and starts to open the partitions.
        Raises DirectoryError or OSError.
        """
        self.cluster_id = self.log_directories.open()
        self.metadata.start()
        self.quotas.limits.load()
        self.connection_rates.load()
        self.client_metrics.load()
        if self.acls is not None:
            self.acls.load()
        if self.tokens is not None:
            self.tokens.load()
            self.turn.every(lambda: self.config["delegation.token.expiry.check.interval.ms"], self._sweep_tokens)
        self.replicas.start()
        self.node_lives.start()
        self.in_sync.start()
        self.groups.start()
        self.turn.settle()

    def stop(self) -> str | None:
        """Closes every log cleanly; returns what went wrong, None after a clean stop. Parked requests get no reply:
        their connections are closed.
        """
        self.turn.stopped = True
        for one in self.coordinators.values():
            bugs.guarded(f"stopping the coordinators of {one.topic_name}", one.stop)
        failures: list[str] = []
        for step in (self.replicas.stop, self.metadata.stop, lambda: self.replicas.finish(self.metadata.broker_epoch)):
            try:
                step()
            except Exception as error:
                if not isinstance(error, OSError):
                    bugs.report("stopping", error)
                failures.append(str(error))
                self.replicas.clean_stop = False
        self.log_directories.pool.close_all()
        return failures[0] if failures else self.replicas.stop_failure

    # nodes

    def of_node(self, node: Node) -> Broker:
        """Returns the broker as the connections of one node see it, after the start: its own configuration, the
        partitions that it leads with their coordinators, and sessions of its own.
        """
        if len(self.nodes) == 1:
            return self
        found = copy(self)
        found.config = node.config
        found.settings = self.settings.of_node(node.config)
        self.replicas.cleaner.start(found.settings)
        found.partitions = partitions = self.partitions.of_node(node.id)
        found.groups = self.groups.of_node(partitions)
        found.share_states = self.share_states.of_node(partitions)
        found.transactions = self.transactions.of_node(partitions)
        found.metrics = Metrics()
        found.producer_ids = ProducerIds(self.turn, self.metadata, node.id)
        if node is not self.nodes.first:
            found.extensions = {}
            found.quotas = self.quotas.of_node()
            found.connection_rates = self.connection_rates.of_node(found._connection_rate)
            found.loggers = self.loggers.of_node()
        found.share_partitions = self.share_partitions.of_node(partitions)
        self._views[node.id] = found
        return found

    def cut_off(self, node: Node) -> None:
        """A node goes on with the metadata that it has, and what it asks of the controller waits."""
        view = self._views.get(node.id)
        if view is not None and isinstance(view.partitions, PartitionsOfNode):
            view.image = self.image.copied()
            view.partitions.cut_off(view.image)
            view.metadata = view.producer_ids.metadata = UnreachedController.of(self.metadata, node)
            view.appender = StaleAppender(self.appender, node.id)

    def healed(self, node: Node) -> None:
        """Ends `cut_off`."""
        view = self._views.get(node.id)
        if view is not None and isinstance(view.metadata, UnreachedController):
            assert isinstance(view.partitions, PartitionsOfNode)
            unsent = view.metadata.events
            view.metadata = view.producer_ids.metadata = self.metadata
            view.image = self.image
            view.partitions.healed(self.partitions)
            view.appender = self.appender
            unsent.reach()

    def views(self) -> Iterator[Broker]:
        """Yields the broker as each of its nodes sees it."""
        for node in self.nodes:
            view = self._views.get(node.id)
            if view is not None:
                yield view
        if not self._views:
            yield self

    def alive(self) -> Iterator[Node]:
        """Yields the nodes that clients hear of: those that are not fenced."""
        for node in self.nodes:
            found = self.image.brokers.get(node.id)
            if found is not None and not found.fenced:
                yield node

    # partitions and the coordinators on them

    def _opened(self, partition: Partition) -> None:
        """A partition's log can now be read and written."""
        self.turn.moved(partition)
        family = self.coordinators.get(partition.topic)
        if family is not None:
            bugs.guarded(f"the coordinator on {partition.name}", family.opened, partition)

    def _directory_failed(self, directory: LogDirectory) -> None:
        homes = self.partitions.directory_of
        self.replicas.go_offline(directory)
        self.metadata.directory_failed({(one.topic_id, one.index) for one, home in homes.items() if home is directory})

    def _closed(self, partition: Partition) -> None:
        """A partition was removed, or its directory failed."""
        family = self.coordinators.get(partition.topic)
        if family is not None:
            bugs.guarded(f"the coordinator on {partition.name}", family.closed, partition)
        bugs.guarded(f"the share groups of {partition.name}", self.share_partitions.reload, partition)

    def _left(self, partition: Partition, node: int) -> None:
        """A partition has another leader than a node that is cut off, and that goes on."""
        family = self.coordinators.get(partition.topic)
        if family is not None:
            bugs.guarded(f"the coordinator on {partition.name}", family.leave, partition, node)
        bugs.guarded(f"the share groups of {partition.name}", self.share_partitions.reload, partition)

    def _forgotten(self, node: int) -> None:
        for family in self.coordinators.values():
            bugs.guarded(f"the coordinators of node {node}", family.forget_left, node)

    def hosts(self) -> Iterator[ShardHost[Any]]:
        """Yields every coordinator shard that this broker hosts."""
        for family in self.coordinators.values():
            yield from family.hosts.values()

    def topic(self, name: str) -> Topic | None:
        found: Topic | None = self.image.topics.get(name)
        return found
