import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionReplica;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.quota.*;
import org.apache.kafka.common.resource.*;
import org.apache.kafka.common.security.token.delegation.DelegationToken;
import org.apache.kafka.common.serialization.*;

/**
 * Kafka's own clients, which are told what to do: a line is an operation and a name that is new; the answer is `heard` and the error code that the
 * client raises, 0 for none. The arguments are the address of the broker, that of its listener where clients log in, and a user and its password. `prepare NAME` makes a topic. Every client tries again after 10 ms, and gives up after a minute.
 */
public class ErrorCodes {
    interface Operation { void run(Admin admin, String name) throws Exception; }

    static final String TOPIC = "errors";
    static final TopicPartition PARTITION = new TopicPartition(TOPIC, 0);
    static final int SESSION_MS = 1500; // after an UNKNOWN_MEMBER_ID the member that there was is waited for
    static String bootstrap;
    static Admin loggedIn;
    static DelegationToken token;

    static Properties settings(Object... more) {
        Properties found = new Properties();
        for (Object[] one : new Object[][] {{"bootstrap.servers", bootstrap}, {"retry.backoff.ms", 10}, {"retry.backoff.max.ms", 20},
                {"default.api.timeout.ms", 60000}, {"request.timeout.ms", 30000}}) found.put(one[0], one[1]);
        for (int i = 0; i < more.length; i += 2) found.put(more[i], more[i + 1]);
        return found;
    }

    static NewTopic topic(String name) { return new NewTopic(name, 1, (short) 1); }

    static KafkaConsumer<byte[], byte[]> consumer(Object... more) {
        return new KafkaConsumer<>(settings(more), new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static void read(KafkaConsumer<byte[], byte[]> consumer) {
        long until = System.currentTimeMillis() + 60000;
        while (consumer.poll(Duration.ofMillis(200)).isEmpty())
            if (System.currentTimeMillis() > until) throw new IllegalStateException("no records within a minute");
    }

    static void send(Object... more) throws Exception {
        Properties settings = settings(more);
        settings.put("delivery.timeout.ms", 60000);
        settings.put("max.block.ms", 60000);
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            producer.send(new ProducerRecord<>(TOPIC, 0, null, new byte[10])).get();
        }
    }

    static void readInGroup(String name, Object... more) {
        Object[] settings = {"group.id", name, "auto.offset.reset", "earliest"};
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(Stream.of(settings, more).flatMap(Stream::of).toArray())) {
            consumer.subscribe(List.of(TOPIC));
            read(consumer);
            consumer.commitSync();
        }
    }

    /** Reads in a classic group, and goes on until heartbeats were answered after an error. */
    static void beat(String name) {
        Object[] more = {"group.id", name, "auto.offset.reset", "earliest", "heartbeat.interval.ms", 50, "session.timeout.ms", SESSION_MS};
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(more)) {
            consumer.subscribe(List.of(TOPIC));
            read(consumer);
            while (heartbeats(consumer) < 3) consumer.poll(Duration.ofMillis(50));
            consumer.commitSync();
        }
    }

    static double heartbeats(Consumer<byte[], byte[]> consumer) {
        return consumer.metrics().entrySet().stream().filter(one -> one.getKey().name().equals("heartbeat-total"))
            .mapToDouble(one -> (double) one.getValue().metricValue()).sum();
    }

    /** A transaction with a record and an offset. An error that ends it is raised as it came. */
    static void transact(String name) throws Exception {
        Properties settings = settings("transactional.id", name, "max.block.ms", 60000);
        KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
        try {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>("transactions", 0, null, new byte[10])).get(); // or its error and the next step would meet in any order
            producer.sendOffsetsToTransaction(Map.of(PARTITION, new OffsetAndMetadata(1)), new ConsumerGroupMetadata(name));
            producer.commitTransaction();
        } catch (Exception problem) {
            for (Throwable one = problem; one != null; one = one.getCause())
                if (Errors.forException(one) != Errors.UNKNOWN_SERVER_ERROR) throw new ExecutionException(one);
            throw problem;
        } finally {
            producer.close(Duration.ZERO); // which does not wait for what cannot be done any more
        }
    }

    /** Reads a record in a share group, and acknowledges it. */
    static void share(Admin admin, String name) throws Exception {
        admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.GROUP, name),
            List.of(new AlterConfigOp(new ConfigEntry("share.auto.offset.reset", "earliest"), AlterConfigOp.OpType.SET)))).all().get();
        Properties settings = settings("group.id", name, "max.poll.records", 1);
        try (KafkaShareConsumer<byte[], byte[]> consumer = new KafkaShareConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of(TOPIC));
            long until = System.currentTimeMillis() + 60000;
            while (consumer.poll(Duration.ofMillis(200)).isEmpty())
                if (System.currentTimeMillis() > until) throw new IllegalStateException("no records within a minute");
            for (Optional<?> error : consumer.commitSync().values())
                if (error.isPresent()) throw new ExecutionException((Throwable) error.get());
        }
    }

    /** Of a client that logs in. */
    static Object[] login;

    /** Connects anew. */
    static void connect(Object... more) throws Exception {
        try (Admin anew = Admin.create(settings(more))) { anew.describeCluster().nodes().get(); }
    }

    static Admin loggedIn() {
        if (loggedIn == null) loggedIn = Admin.create(settings(login));
        return loggedIn;
    }

    static byte[] hmac() throws Exception {
        if (token == null) token = loggedIn().createDelegationToken().delegationToken().get();
        return token.hmac();
    }

    static String directory(Admin admin) throws Exception {
        return admin.describeLogDirs(List.of(1)).allDescriptions().get().get(1).keySet().iterator().next();
    }

    static final Map<String, Operation> OPERATIONS = Map.ofEntries(
        Map.entry("prepare", (admin, name) -> admin.createTopics(List.of(topic(name))).all().get()),
        Map.entry("CreateTopics", (admin, name) -> admin.createTopics(List.of(topic(name))).all().get()),
        Map.entry("DeleteTopics", (admin, name) -> admin.deleteTopics(List.of(name)).all().get()),
        Map.entry("CreatePartitions", (admin, name) -> admin.createPartitions(Map.of(name, NewPartitions.increaseTo(2))).all().get()),
        Map.entry("DescribeTopicPartitions", (admin, name) -> admin.describeTopics(List.of(TOPIC)).allTopicNames().get()),
        Map.entry("Metadata", (admin, name) -> admin.listTopics().names().get()),
        Map.entry("DescribeCluster", (admin, name) -> admin.describeCluster().nodes().get()),
        Map.entry("DescribeConfigs", (admin, name) -> admin.describeConfigs(List.of(resource())).all().get()),
        Map.entry("IncrementalAlterConfigs", (admin, name) -> admin.incrementalAlterConfigs(Map.of(resource(),
            List.of(new AlterConfigOp(new ConfigEntry("retention.ms", "1000000"), AlterConfigOp.OpType.SET)))).all().get()),
        Map.entry("ListConfigResources", (admin, name) -> admin.listConfigResources().all().get()),
        Map.entry("DescribeLogDirs", (admin, name) -> admin.describeLogDirs(List.of(1)).allDescriptions().get()),
        Map.entry("AlterReplicaLogDirs", (admin, name) ->
            admin.alterReplicaLogDirs(Map.of(new TopicPartitionReplica(TOPIC, 0, 1), directory(admin))).all().get()),
        Map.entry("AddRaftVoter", (admin, name) ->
            admin.addRaftVoter(99, Uuid.randomUuid(), Set.of(new RaftVoterEndpoint("CONTROLLER", "127.0.0.1", 1))).all().get()),
        Map.entry("RemoveRaftVoter", (admin, name) -> admin.removeRaftVoter(99, Uuid.randomUuid()).all().get()),
        Map.entry("UnregisterController", (admin, name) -> admin.unregisterController(99).all().get()),
        Map.entry("WriteTxnMarkers", (admin, name) ->
            admin.abortTransaction(new AbortTransactionSpec(new TopicPartition("transactions", 0), 99, (short) 0, 0)).all().get()),
        Map.entry("UnregisterBroker", (admin, name) -> admin.unregisterBroker(99).all().get()),
        Map.entry("CreateDelegationToken", (admin, name) -> loggedIn().createDelegationToken().delegationToken().get()),
        Map.entry("RenewDelegationToken", (admin, name) -> loggedIn().renewDelegationToken(hmac()).expiryTimestamp().get()),
        Map.entry("ExpireDelegationToken", (admin, name) ->
            loggedIn().expireDelegationToken(hmac(), new ExpireDelegationTokenOptions().expiryTimePeriodMs(3600000)).expiryTimestamp().get()),
        Map.entry("DescribeDelegationToken", (admin, name) -> loggedIn().describeDelegationToken().delegationTokens().get()),
        Map.entry("ApiVersions", (admin, name) -> connect()),
        Map.entry("SaslHandshake", (admin, name) -> connect(login)),
        Map.entry("SaslAuthenticate", (admin, name) -> connect(login)),
        Map.entry("OffsetForLeaderEpoch", (admin, name) -> {
            try (KafkaConsumer<byte[], byte[]> consumer = consumer("auto.offset.reset", "none")) {
                consumer.assign(List.of(PARTITION));
                consumer.seek(PARTITION, new OffsetAndMetadata(0, Optional.of(0), "")); // which is compared with the leader's log
                read(consumer);
            }
        }),
        Map.entry("DeleteRecords", (admin, name) -> admin.deleteRecords(Map.of(PARTITION, RecordsToDelete.beforeOffset(0))).all().get()),
        Map.entry("ListOffsets", (admin, name) -> admin.listOffsets(Map.of(PARTITION, OffsetSpec.latest())).all().get()),
        Map.entry("ElectLeaders", (admin, name) -> {
            Optional<Throwable> found = admin.electLeaders(ElectionType.PREFERRED, Set.of(PARTITION)).partitions().get().get(PARTITION);
            if (found.isPresent()) throw new ExecutionException(found.get());
        }),
        Map.entry("AlterPartitionReassignments", (admin, name) ->
            admin.alterPartitionReassignments(Map.of(PARTITION, Optional.of(new NewPartitionReassignment(List.of(1))))).all().get()),
        Map.entry("ListPartitionReassignments", (admin, name) -> admin.listPartitionReassignments().reassignments().get()),
        Map.entry("ListGroups", (admin, name) -> admin.listGroups().all().get()),
        Map.entry("ConsumerGroupDescribe", (admin, name) -> admin.describeConsumerGroups(List.of("errors-group")).all().get()),
        Map.entry("DescribeGroups", (admin, name) -> admin.describeClassicGroups(List.of("errors-group")).all().get()),
        Map.entry("FindCoordinator", (admin, name) -> admin.describeClassicGroups(List.of("errors-group")).all().get()),
        Map.entry("DeleteGroups", (admin, name) -> admin.deleteConsumerGroups(List.of("no-group")).all().get()),
        Map.entry("OffsetCommit", (admin, name) ->
            admin.alterConsumerGroupOffsets("errors-group", Map.of(PARTITION, new OffsetAndMetadata(1))).all().get()),
        Map.entry("OffsetFetch", (admin, name) ->
            admin.listConsumerGroupOffsets("errors-group").partitionsToOffsetAndMetadata().get()),
        Map.entry("OffsetDelete", (admin, name) -> admin.deleteConsumerGroupOffsets("errors-group", Set.of(PARTITION)).all().get()),
        Map.entry("ShareGroupDescribe", (admin, name) -> admin.describeShareGroups(List.of("no-group")).all().get()),
        Map.entry("StreamsGroupDescribe", (admin, name) -> admin.describeStreamsGroups(List.of("no-group")).all().get()),
        Map.entry("StreamsGroupHeartbeat", (admin, name) -> ErrorStreams.join(admin, settings(), TOPIC, name)),
        Map.entry("StreamsGroupTopologyDescriptionUpdate", (admin, name) -> ErrorStreams.join(admin, settings(), TOPIC, name)),
        Map.entry("DescribeShareGroupOffsets", (admin, name) ->
            admin.listShareGroupOffsets(Map.of("no-group", new ListShareGroupOffsetsSpec())).all().get()),
        Map.entry("AlterShareGroupOffsets", (admin, name) -> admin.alterShareGroupOffsets(name, Map.of(PARTITION, 0L)).all().get()),
        Map.entry("DeleteShareGroupOffsets", (admin, name) -> admin.deleteShareGroupOffsets("no-group", Set.of(TOPIC)).all().get()),
        Map.entry("DescribeUserScramCredentials", (admin, name) -> admin.describeUserScramCredentials(List.of("u")).all().get()),
        Map.entry("AlterUserScramCredentials", (admin, name) -> admin.alterUserScramCredentials(List.of(
            new UserScramCredentialUpsertion("u", new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), "secret"))).all().get()),
        Map.entry("DescribeClientQuotas", (admin, name) -> admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get()),
        Map.entry("AlterClientQuotas", (admin, name) -> admin.alterClientQuotas(List.of(new ClientQuotaAlteration(
            new ClientQuotaEntity(Map.of("user", "u")), List.of(new ClientQuotaAlteration.Op("producer_byte_rate", 1e9))))).all().get()),
        Map.entry("DescribeAcls", (admin, name) -> admin.describeAcls(AclBindingFilter.ANY).values().get()),
        Map.entry("CreateAcls", (admin, name) -> admin.createAcls(List.of(acl())).all().get()),
        Map.entry("DeleteAcls", (admin, name) -> admin.deleteAcls(List.of(acl().toFilter())).all().get()),
        Map.entry("DescribeProducers", (admin, name) -> admin.describeProducers(List.of(PARTITION)).all().get()),
        Map.entry("DescribeTransactions", (admin, name) -> admin.describeTransactions(List.of("none")).all().get()),
        Map.entry("ListTransactions", (admin, name) -> admin.listTransactions().all().get()),
        Map.entry("DescribeQuorum", (admin, name) -> admin.describeMetadataQuorum().quorumInfo().get()),
        Map.entry("UpdateFeatures", (admin, name) -> admin.updateFeatures(Map.of("group.version",
            new FeatureUpdate((short) 1, FeatureUpdate.UpgradeType.UPGRADE)), new UpdateFeaturesOptions()).all().get()),
        Map.entry("InitProducerId", (admin, name) -> admin.fenceProducers(List.of(name)).all().get()),
        Map.entry("Produce", (admin, name) -> send("enable.idempotence", false)),
        Map.entry("Fetch", (admin, name) -> {
            try (KafkaConsumer<byte[], byte[]> consumer = consumer("auto.offset.reset", "none")) {
                consumer.assign(List.of(PARTITION));
                consumer.seek(PARTITION, 0);
                read(consumer);
            }
        }),
        Map.entry("JoinGroup", (admin, name) -> readInGroup(name)),
        Map.entry("SyncGroup", (admin, name) -> readInGroup(name, "session.timeout.ms", SESSION_MS, "heartbeat.interval.ms", 50)),
        Map.entry("Heartbeat", (admin, name) -> beat(name)),
        Map.entry("LeaveGroup", (admin, name) -> readInGroup(name)),
        Map.entry("TxnOffsetCommit", (admin, name) -> transact(name)),
        Map.entry("AddPartitionsToTxn", (admin, name) -> transact(name)),
        Map.entry("AddOffsetsToTxn", (admin, name) -> transact(name)),
        Map.entry("EndTxn", (admin, name) -> transact(name)),
        Map.entry("ShareGroupHeartbeat", (admin, name) -> share(admin, name)),
        Map.entry("ShareFetch", (admin, name) -> share(admin, name)),
        Map.entry("ShareAcknowledge", (admin, name) -> share(admin, name)),
        Map.entry("ConsumerGroupHeartbeat", (admin, name) -> readInGroup(name, "group.protocol", "consumer"))
    );

    static ConfigResource resource() { return new ConfigResource(ConfigResource.Type.TOPIC, TOPIC); }

    static AclBinding acl() {
        return new AclBinding(new ResourcePattern(ResourceType.TOPIC, "t", PatternType.LITERAL),
            new AccessControlEntry("User:u", "*", AclOperation.READ, AclPermissionType.ALLOW));
    }

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        login = new Object[] {"bootstrap.servers", arguments[1], "security.protocol", "SASL_PLAINTEXT", "sasl.mechanism", "SCRAM-SHA-256",
            "sasl.jaas.config", "org.apache.kafka.common.security.scram.ScramLoginModule required username=\"" + arguments[2] + "\" password=\"" + arguments[3] + "\";"};
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        try (Admin admin = Admin.create(settings())) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                String[] words = line.split(" ");
                String answer;
                try {
                    OPERATIONS.get(words[0]).run(admin, words[1]);
                    answer = "0";
                } catch (Throwable problem) {
                    Throwable cause = problem instanceof ExecutionException ? problem.getCause() : problem;
                    Errors error = Errors.forException(cause);
                    answer = error == Errors.UNKNOWN_SERVER_ERROR ? cause.toString().replace('\n', ' ') : "" + error.code();
                }
                System.out.println("heard " + answer);
            }
        }
    }
}
