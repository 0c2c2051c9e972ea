import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.*;

/**
 * Kafka's own transactional producers and read_committed consumers, against the broker of which the address is the first argument. It looks
 * for transactions that take too long twice a second or more often. With a second argument no two producers write at once.
 */
public class TransactionClients {
    static String servers;
    static Admin admin;
    static int made = 0;

    static void check(String what, boolean ok, Object... more) {
        if (!ok) throw new AssertionError(what + " " + Arrays.toString(more));
    }

    static String topic(int partitions) throws Exception {
        String name = "java-txn-" + made++ + "-" + UUID.randomUUID().toString().substring(0, 6);
        admin.createTopics(List.of(new NewTopic(name, partitions, (short) 1))).all().get();
        return name;
    }

    static KafkaProducer<String, String> producer(String id, String... more) {
        Properties config = new Properties();
        config.put("bootstrap.servers", servers);
        config.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        config.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        if (id != null) config.put("transactional.id", id);
        for (int i = 0; i < more.length; i += 2) config.put(more[i], more[i + 1]);
        KafkaProducer<String, String> producer = new KafkaProducer<>(config);
        if (id != null) producer.initTransactions();
        return producer;
    }

    static KafkaConsumer<String, String> consumer(String isolation, String... more) {
        Properties config = new Properties();
        config.put("bootstrap.servers", servers);
        config.put("isolation.level", isolation);
        config.put("auto.offset.reset", "earliest");
        config.put("enable.auto.commit", "false");
        config.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        config.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        for (int i = 0; i < more.length; i += 2) config.put(more[i], more[i + 1]);
        return new KafkaConsumer<>(config);
    }

    /** Every value of a topic up to its end as the isolation level has it. */
    static List<String> values(String topic, String isolation) {
        List<String> found = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer = consumer(isolation)) {
            List<TopicPartition> all = consumer.partitionsFor(topic).stream().map(p -> new TopicPartition(topic, p.partition())).toList();
            consumer.assign(all);
            consumer.seekToBeginning(all);
            Map<TopicPartition, Long> ends = consumer.endOffsets(all);
            long deadline = System.nanoTime() + 20_000_000_000L;
            while (all.stream().anyMatch(p -> consumer.position(p) < ends.get(p))) {
                check("reading takes too long", System.nanoTime() < deadline, topic, ends);
                consumer.poll(Duration.ofMillis(50)).forEach(r -> found.add(r.value()));
            }
        }
        return found;
    }

    static void expect(String what, Class<?>[] wanted, Callable<?> action) throws Exception {
        try {
            action.call();
        } catch (Exception thrown) {
            for (Throwable t = thrown; t != null; t = t.getCause()) for (Class<?> one : wanted) if (one.isInstance(t)) return;
            throw thrown;
        }
        throw new AssertionError(what + " has not failed");
    }

    static <T> T until(String what, Callable<T> attempt, java.util.function.Predicate<T> done) throws Exception {
        for (long limit = System.nanoTime() + 40_000_000_000L; System.nanoTime() < limit; ) {
            T found = attempt.call();
            if (done.test(found)) return found;
            Thread.sleep(20);
        }
        throw new AssertionError(what + " takes too long");
    }

    static void commitsAndAborts() throws Exception {
        String topic = topic(10);
        List<String> wanted = new ArrayList<>();
        try (KafkaProducer<String, String> producer = producer(topic)) {
            for (int n = 0; n < 20; n++) {
                producer.beginTransaction();
                for (int i = 0; i < 30; i++) producer.send(new ProducerRecord<>(topic, i % 10, "k", n + "-" + i));
                if (n % 3 == 0) {
                    producer.flush();  // else what has not been sent would never be
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                    for (int i = 0; i < 30; i++) wanted.add(n + "-" + i);
                }
            }
            producer.beginTransaction();
            producer.commitTransaction();
            producer.beginTransaction();
            producer.abortTransaction();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, 3, "k", "open")).get();
            List<String> seen = values(topic, "read_committed");
            Collections.sort(seen);
            Collections.sort(wanted);
            check("committed records", seen.equals(wanted), seen.size(), wanted.size());
            check("all records", values(topic, "read_uncommitted").size() == 601);
            producer.commitTransaction();
        }
        check("the last one", values(topic, "read_committed").contains("open"));
    }

    static void zombies() throws Exception {
        String topic = topic(1);
        Class<?>[] fenced = {ProducerFencedException.class, InvalidProducerEpochException.class};
        try (KafkaProducer<String, String> old = producer(topic)) {
            old.beginTransaction();
            old.send(new ProducerRecord<>(topic, "k", "old")).get();
            try (KafkaProducer<String, String> young = producer(topic)) {
                expect("a zombie's commit", fenced, () -> { old.commitTransaction(); return null; });
                young.beginTransaction();
                young.send(new ProducerRecord<>(topic, "k", "young"));
                young.commitTransaction();
                try (KafkaProducer<String, String> third = producer(topic)) {
                    young.beginTransaction();
                    expect("a zombie's record", fenced, () -> young.send(new ProducerRecord<>(topic, "k", "zombie")).get());
                }
            }
        }
        check("only the young one's", values(topic, "read_committed").equals(List.of("young")));
        KafkaProducer<String, String> victim = producer(topic);
        victim.beginTransaction();
        admin.fenceProducers(List.of(topic)).all().get();
        expect("a fenced producer", fenced, () -> { victim.send(new ProducerRecord<>(topic, "k", "fenced")).get(); victim.commitTransaction(); return null; });
        victim.close(Duration.ZERO);
    }

    static void tooLong() throws Exception {
        String topic = topic(1);
        try (KafkaProducer<String, String> slow = producer(topic, "transaction.timeout.ms", "700")) {
            slow.beginTransaction();
            slow.send(new ProducerRecord<>(topic, "k", "late")).get();
            until("the abort", () -> admin.describeTransactions(List.of(topic)).description(topic).get().state(), s -> s == TransactionState.COMPLETE_ABORT);
            expect("a late commit", new Class<?>[] {InvalidTxnStateException.class}, () -> { slow.commitTransaction(); return null; });
        }
        expect("too long a time-out", new Class<?>[] {KafkaException.class}, () -> producer(topic, "transaction.timeout.ms", "2000000000"));
        check("nothing is left", values(topic, "read_committed").isEmpty());
    }

    /** KIP-447, in both protocols of groups: what is consumed and what is produced go together; a member that is out cannot commit. */
    static void consumeTransformProduce(String protocol) throws Exception {
        String in = topic(2), out = topic(2), group = in + "-" + protocol;
        try (KafkaProducer<String, String> source = producer(null)) {
            for (int n = 0; n < 100; n++) source.send(new ProducerRecord<>(in, n % 2, "k" + n % 2, "" + n));
        }
        ConsumerGroupMetadata stale = null;
        int rounds = 0;
        try (KafkaProducer<String, String> producer = producer(group)) {
            for (int life = 0; life < 2; life++) {
                try (KafkaConsumer<String, String> consumer = consumer("read_committed", "group.id", group, "group.protocol", protocol, "max.poll.records", "10")) {
                    consumer.subscribe(List.of(in));
                    int empty = 0;
                    while (rounds < 6 + 6 * life && empty < 100) {
                        ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(100));
                        if (records.isEmpty()) {
                            empty++;
                            continue;
                        }
                        producer.beginTransaction();
                        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                        for (ConsumerRecord<String, String> r : records) {
                            producer.send(new ProducerRecord<>(out, r.partition(), r.key(), "x" + r.value()));
                            offsets.put(new TopicPartition(in, r.partition()), new OffsetAndMetadata(r.offset() + 1));
                        }
                        producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                        stale = consumer.groupMetadata();
                        if (++rounds % 4 == 0) {  // what was consumed comes again
                            producer.abortTransaction();
                            Map<TopicPartition, OffsetAndMetadata> known = consumer.committed(consumer.assignment());
                            for (TopicPartition p : consumer.assignment()) consumer.seek(p, known.get(p) == null ? 0 : known.get(p).offset());
                        } else {
                            producer.commitTransaction();
                        }
                    }
                }
            }
            ConsumerGroupMetadata gone = stale;
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(out, "k", "of nobody"));
            expect("offsets of a member that left", new Class<?>[] {CommitFailedException.class, KafkaException.class},
                () -> { producer.sendOffsetsToTransaction(Map.of(new TopicPartition(in, 0), new OffsetAndMetadata(0)), gone); producer.commitTransaction(); return null; });
            producer.abortTransaction();
        }
        List<String> seen = values(out, "read_committed");
        check("nothing twice in " + protocol, new HashSet<>(seen).size() == seen.size(), seen);
        Map<TopicPartition, OffsetAndMetadata> offsets = admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
        long total = offsets.values().stream().mapToLong(OffsetAndMetadata::offset).sum();
        check("as much was committed as was written in " + protocol, total == seen.size() && total >= 50, total, seen.size());
    }

    /** Each record in a transaction of its own, with its offset. */
    static void exactlyOnceExample() throws Exception {
        String in = topic(1), out = topic(1);
        try (KafkaProducer<String, String> source = producer(null)) {
            for (int n = 0; n < 20; n++) source.send(new ProducerRecord<>(in, "k", "" + n));
        }
        try (KafkaProducer<String, String> producer = producer(in); KafkaConsumer<String, String> consumer = consumer("read_committed", "group.id", in)) {
            consumer.subscribe(List.of(in));
            int done = 0;
            while (done < 20) {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(100));
                for (ConsumerRecord<String, String> record : records) {
                    producer.beginTransaction();
                    producer.send(new ProducerRecord<>(out, record.key(), record.value()));
                    producer.sendOffsetsToTransaction(
                        Map.of(new TopicPartition(record.topic(), record.partition()), new OffsetAndMetadata(record.offset() + 1)), consumer.groupMetadata());
                    producer.commitTransaction();
                    done++;
                }
            }
            check("the offset", consumer.committed(Set.of(new TopicPartition(in, 0))).get(new TopicPartition(in, 0)).offset() == 20);
        }
        check("each once, in order", values(out, "read_committed").equals(java.util.stream.IntStream.range(0, 20).mapToObj(n -> "" + n).toList()));
    }

    static void administration() throws Exception {
        String topic = topic(2);
        TopicPartition first = new TopicPartition(topic, 0);
        KafkaProducer<String, String> producer = producer(topic);
        producer.beginTransaction();
        producer.send(new ProducerRecord<>(topic, 0, "k", "a")).get();
        producer.send(new ProducerRecord<>(topic, 1, "k", "b")).get();
        TransactionDescription described = admin.describeTransactions(List.of(topic)).description(topic).get();
        check("described", described.state() == TransactionState.ONGOING && described.topicPartitions().size() == 2, described);
        TransactionListing listed = admin.listTransactions().all().get().stream().filter(l -> l.transactionalId().equals(topic)).findFirst().get();
        check("listed", listed.producerId() == described.producerId() && listed.state() == TransactionState.ONGOING, listed);
        check("by state", admin.listTransactions(new ListTransactionsOptions().filterStates(List.of(TransactionState.COMPLETE_ABORT)))
            .all().get().stream().noneMatch(l -> l.transactionalId().equals(topic)));
        check("by pattern", admin.listTransactions(new ListTransactionsOptions().filterOnTransactionalIdPattern("java-txn-.*")).all().get().size() > 0);
        ProducerState state = admin.describeProducers(List.of(first)).partitionResult(first).get().activeProducers().get(0);
        check("producer", state.currentTransactionStartOffset().getAsLong() == 0 && state.producerId() == described.producerId(), state);
        short epoch = (short) state.producerEpoch();
        admin.abortTransaction(new AbortTransactionSpec(first, state.producerId(), epoch, state.coordinatorEpoch().orElse(0))).all().get();
        check("aborted by an administrator", values(topic, "read_committed").isEmpty());
        admin.forceTerminateTransaction(topic).result().get();
        check("ended", admin.describeTransactions(List.of(topic)).description(topic).get().state() == TransactionState.EMPTY);
        producer.close(Duration.ZERO);
        expect("an unknown id", new Class<?>[] {TransactionalIdNotFoundException.class}, () -> admin.describeTransactions(List.of("nobody")).description("nobody").get());
    }

    static void manyAtOnce() throws Exception {
        String topic = topic(4);
        ExecutorService pool = Executors.newFixedThreadPool(8);
        List<Future<Integer>> all = new ArrayList<>();
        for (int p = 0; p < 8; p++) {
            int number = p;
            all.add(pool.submit(() -> {
                int committed = 0;
                try (KafkaProducer<String, String> producer = producer(topic + "-" + number, "linger.ms", "0")) {
                    for (int n = 0; n < 25; n++) {
                        producer.beginTransaction();
                        for (int i = 0; i < 5; i++) producer.send(new ProducerRecord<>(topic, (n + i) % 4, "k", number + "-" + n + "-" + i));
                        if ((n + number) % 2 == 0) {
                            producer.commitTransaction();
                            committed += 5;
                        } else {
                            producer.abortTransaction();
                        }
                    }
                }
                return committed;
            }));
        }
        int wanted = 0;
        for (Future<Integer> one : all) wanted += one.get();
        pool.shutdown();
        List<String> seen = values(topic, "read_committed");
        check("everything once", seen.size() == wanted && new HashSet<>(seen).size() == wanted, seen.size(), wanted);
    }

    public static void main(String[] arguments) throws Exception {
        servers = arguments[0];
        admin = Admin.create(Map.of("bootstrap.servers", servers));
        commitsAndAborts();
        zombies();
        tooLong();
        consumeTransformProduce("classic");
        consumeTransformProduce("consumer");
        exactlyOnceExample();
        administration();
        if (arguments.length == 1) manyAtOnce(); // their records have an order of their own in each broker
        admin.close();
        System.out.println("ok");
        System.exit(0);
    }
}
