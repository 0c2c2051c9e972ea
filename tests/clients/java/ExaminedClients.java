import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;

/**
 * Kafka's own clients in examinations of the verdict. Each argument is the name of one and the address of its broker. The work of an
 * examination goes on until a line comes on the standard input.
 */
public class ExaminedClients {
    static final int TOGETHER = 10;
    static final int HEARTBEATS = 5; // that a static member sends before it goes, at least
    static final int CHURN = 8; // steps after which the second member goes, and comes again
    static final String LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"examined\" password=\"examined-secret\";";
    static final BlockingQueue<String> orders = new LinkedBlockingQueue<>();

    static Map<String, Object> at(String servers, String... more) {
        Map<String, Object> config = new HashMap<>(Map.of("bootstrap.servers", servers));
        for (String side : List.of("key", "value")) {
            config.put(side + ".serializer", "org.apache.kafka.common.serialization.StringSerializer");
            config.put(side + ".deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        }
        for (int i = 0; i < more.length; i += 2) config.put(more[i], more[i + 1]);
        return config;
    }

    interface Step { void run() throws Exception; }

    /** Repeats a step until the examiner has seen enough. */
    static void until(Step step) throws Exception {
        while (orders.poll() == null) step.run();
    }

    static String[] with(String[] some, String... more) {
        String[] all = Arrays.copyOf(some, some.length + more.length);
        System.arraycopy(more, 0, all, some.length, more.length);
        return all;
    }

    static KafkaProducer<String, String> producer(String servers, String... more) { return new KafkaProducer<>(at(servers, more)); }

    static KafkaConsumer<String, String> consumer(String servers, String... more) {
        Map<String, Object> config = at(servers, "auto.offset.reset", "earliest", "enable.auto.commit", "false", "fetch.max.wait.ms", "50");
        config.putAll(at(servers, more));
        return new KafkaConsumer<>(config);
    }

    static ProducerRecord<String, String> record(String topic) { return new ProducerRecord<>(topic, 0, "k", "v"); }

    /** Records that do not wait for each other, each in a batch of its own. */
    static void together(String servers, int together) throws Exception {
        try (KafkaProducer<String, String> producer = producer(servers, "linger.ms", "0", "batch.size", "0")) {
            until(() -> {
                for (int i = 0; i < together; i++) producer.send(record("plain"));
                producer.flush();
            });
        }
    }

    /** A record now and then. */
    static void seldom(String servers) throws Exception {
        try (KafkaProducer<String, String> producer = producer(servers)) {
            until(() -> {
                producer.send(record("plain")).get();
                Thread.sleep(3000);
            });
        }
    }

    /** A producer, and a consumer that chooses its partition and commits. */
    static void plain(String servers, String... more) throws Exception {
        TopicPartition first = new TopicPartition("plain", 0);
        String[] config = with(more, "group.id", "plain");
        try (KafkaProducer<String, String> producer = producer(servers, more); KafkaConsumer<String, String> consumer = consumer(servers, config)) {
            producer.send(record("plain")).get();
            consumer.assign(List.of(first));
            until(() -> {
                producer.send(record("plain")).get();
                consumer.poll(Duration.ofMillis(50));
                consumer.commitSync();
                consumer.endOffsets(List.of(first));
                producer.partitionsFor("plain-" + System.nanoTime() % 3);
            });
        }
    }

    /** A consumer that chooses its partition, and only reads. */
    static void reading(String servers) throws Exception {
        try (KafkaConsumer<String, String> consumer = consumer(servers)) {
            consumer.assign(List.of(new TopicPartition("read", 0)));
            until(() -> consumer.poll(Duration.ofMillis(50)));
        }
    }

    /** The offsets are those of a consumer that is a member of a group. */
    static void transactions(String servers) throws Exception {
        TopicPartition first = new TopicPartition("read", 0);
        try (KafkaProducer<String, String> producer = producer(servers, "transactional.id", "tx"); KafkaConsumer<String, String> consumer = consumer(servers, "group.id", "g")) {
            try (KafkaProducer<String, String> writer = producer(servers)) { writer.send(record("read")).get(); }
            consumer.subscribe(List.of("read"));
            while (consumer.poll(Duration.ofMillis(100)).isEmpty()) { }
            producer.initTransactions();
            until(() -> {
                consumer.poll(Duration.ZERO);
                producer.beginTransaction();
                try {
                    producer.send(record("written"));
                    producer.send(record("written"));
                    producer.sendOffsetsToTransaction(Map.of(first, new OffsetAndMetadata(1)), consumer.groupMetadata());
                    producer.commitTransaction();
                } catch (KafkaException e) {
                    producer.abortTransaction();
                }
            });
        }
    }

    /** Two members of a group read and commit; the second one goes and comes again. A static member of another group does so in the end. */
    static void group(String servers, String protocol, String... more) throws Exception {
        String[] config = with(more, "group.id", "members", "group.protocol", protocol);
        Deque<KafkaConsumer<String, String>> members = new ArrayDeque<>();
        int[] steps = {0};
        try (KafkaProducer<String, String> producer = producer(servers)) {
            for (int partition = 0; partition < 2; partition++) producer.send(new ProducerRecord<>("shared", partition, "k", "v")).get();
            members.push(consumer(servers, config));
            members.peek().subscribe(List.of("shared"));
            until(() -> {
                boolean moves = steps[0] % CHURN == 0 && members.stream().noneMatch(member -> member.assignment().isEmpty());
                if (moves && members.size() == 2) members.pop().close();
                else if (moves) {
                    members.push(consumer(servers, config));
                    members.peek().subscribe(List.of("shared"));
                }
                producer.send(new ProducerRecord<>("shared", steps[0]++ % 2, "k", "v")).get();
                for (KafkaConsumer<String, String> member : members) read(member);
            });
            while (!members.isEmpty()) members.pop().close();
            String[] staying = with(config, "group.id", "static", "group.instance.id", "static");
            for (int i = 0; i < 2; i++) {
                try (KafkaConsumer<String, String> member = consumer(servers, staying)) {
                    member.subscribe(List.of("shared"));
                    for (int polls = 0; polls < HEARTBEATS || member.assignment().isEmpty(); polls++) polled(member, 100);
                }
            }
        }
    }

    static void read(KafkaConsumer<String, String> member) {
        try {
            if (!polled(member, 50).isEmpty()) member.commitSync();
        } catch (CommitFailedException | org.apache.kafka.common.errors.RebalanceInProgressException e) {
            // what was read is read again
        }
    }

    static ConsumerRecords<String, String> polled(KafkaConsumer<String, String> member, int ms) {
        try {
            return member.poll(Duration.ofMillis(ms));
        } catch (IllegalStateException e) {
            // a partition can be taken between the look at its buffer and the read, by the consumer's own thread
            if (!e.getMessage().startsWith("No current assignment")) throw e;
            return ConsumerRecords.empty();
        }
    }

    /** Records are acknowledged as they come; some are held for longer in the end, and their locks renewed. */
    static void share(String servers) throws Exception {
        try (KafkaProducer<String, String> producer = producer(servers);
                KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(at(servers, "group.id", "queue", "fetch.max.wait.ms", "50"))) {
            producer.send(record("queue")).get();
            consumer.subscribe(List.of("queue"));
            until(() -> {
                producer.send(record("queue")).get();
                consumer.poll(Duration.ofMillis(50));
                consumer.commitSync();
            });
            consumer.close();
            renewing(servers, producer);
        }
    }

    static void renewing(String servers, KafkaProducer<String, String> producer) throws Exception {
        Map<String, Object> config = at(servers, "group.id", "queue", "fetch.max.wait.ms", "50", "share.acknowledgement.mode", "explicit");
        try (KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(config)) {
            consumer.subscribe(List.of("queue"));
            producer.send(record("queue")).get();
            for (AcknowledgeType type : List.of(AcknowledgeType.RENEW, AcknowledgeType.ACCEPT)) {
                ConsumerRecords<String, String> held = ConsumerRecords.empty();
                while (held.isEmpty()) held = consumer.poll(Duration.ofMillis(50));
                held.forEach(one -> consumer.acknowledge(one, type));
                consumer.commitSync();
            }
        }
    }

    /** Transactions, until a producer can neither commit nor abort. */
    static void endingWrites(String servers) throws Exception {
        try (KafkaProducer<String, String> producer = producer(servers, "transactional.id", "ending")) {
            producer.initTransactions();
            until(() -> {
                producer.beginTransaction();
                try {
                    producer.send(record("written"));
                    producer.commitTransaction();
                } catch (KafkaException e) {
                    producer.abortTransaction();
                }
            });
        } catch (KafkaException e) {
            // its application ends
        }
    }

    /** A member, which commits by itself, until it hears that it may not go on. */
    static void endingMember(String servers, String protocol, String... more) throws Exception {
        String[] config = with(more, "group.id", "ending-" + protocol, "group.protocol", protocol, "enable.auto.commit", "true", "auto.commit.interval.ms", "500");
        try (KafkaProducer<String, String> producer = producer(servers); KafkaConsumer<String, String> member = consumer(servers, config)) {
            producer.send(record("shared")).get();
            member.subscribe(List.of("shared"));
            until(() -> {
                producer.send(record("shared")).get();
                polled(member, 100);
            });
        } catch (KafkaException e) {
            // its application ends
        }
    }

    public static void main(String[] arguments) throws Exception {
        Thread reader = new Thread(() -> new Scanner(System.in).forEachRemaining(orders::add));
        reader.setDaemon(true);
        reader.start();
        for (String argument : arguments) {
            String name = argument.substring(0, argument.indexOf('=')), servers = argument.substring(argument.indexOf('=') + 1);
            switch (name) {
                case "idempotence" -> together(servers, TOGETHER);
                case "ending-sends" -> together(servers, 4 * TOGETHER); // more batches than may be on their way
                case "ending-writes" -> endingWrites(servers);
                case "ending-static" -> endingMember(servers, "classic", "group.instance.id", "ending", "heartbeat.interval.ms", "100", "session.timeout.ms", "6000");
                case "ending-member" -> endingMember(servers, "consumer");
                case "connections" -> seldom(servers);
                case "network" -> plain(servers, "connections.max.idle.ms", "3500");
                case "truncation" -> reading(servers);
                case "transactions" -> transactions(servers);
                case "classic-group" -> group(servers, "classic", "heartbeat.interval.ms", "100", "session.timeout.ms", "6000",
                    "partition.assignment.strategy", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");
                case "consumer-group" -> group(servers, "consumer");
                case "share-group" -> share(servers);
                case "login" -> plain(servers, "security.protocol", "SASL_PLAINTEXT", "sasl.mechanism", "PLAIN", "sasl.jaas.config", LOGIN);
                default -> plain(servers, "compression.type", "zstd");
            }
            System.out.println(name + " done");
        }
    }
}
