import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.WakeupException;

/** Kafka's own share consumer, against the broker of which the address is the first argument. Its shortest lock may be one second. */
public class ShareClients {
    static String servers;
    static Admin admin;
    static KafkaProducer<String, String> producer;
    static int made = 0;

    /** A topic and a group of the same name that begins at its start; so many records, in batches of ten. */
    static String queue(int count, Map<String, String> group) throws Exception {
        String name = "java-share-" + made++ + "-" + UUID.randomUUID().toString().substring(0, 6);
        admin.createTopics(List.of(new NewTopic(name, 1, (short) 1))).all().get();
        Map<String, String> configs = new HashMap<>(group);
        configs.putIfAbsent("share.auto.offset.reset", "earliest");
        configure(ConfigResource.Type.GROUP, name, configs);
        produce(name, 0, count);
        return name;
    }

    static void configure(ConfigResource.Type type, String name, Map<String, String> configs) throws Exception {
        List<AlterConfigOp> ops = new ArrayList<>();
        configs.forEach((k, v) -> ops.add(new AlterConfigOp(new ConfigEntry(k, v), AlterConfigOp.OpType.SET)));
        admin.incrementalAlterConfigs(Map.of(new ConfigResource(type, name), ops)).all().get();
    }

    static void produce(String topic, int first, int count) {
        for (int n = first; n < first + count; n++) {
            producer.send(new ProducerRecord<>(topic, 0, "k" + n, "" + n));
            if (n % 10 == 9) producer.flush();
        }
        producer.flush();
    }

    static KafkaShareConsumer<String, String> consumer(String queue, String... more) {
        Properties config = new Properties();
        config.put("bootstrap.servers", servers);
        config.put("group.id", queue);
        config.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        config.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        for (int i = 0; i < more.length; i += 2) config.put(more[i], more[i + 1]);
        KafkaShareConsumer<String, String> made = new KafkaShareConsumer<>(config);
        made.subscribe(List.of(queue));
        return made;
    }

    static final String[] EXPLICIT = {"share.acknowledgement.mode", "explicit"};

    static List<ConsumerRecord<String, String>> poll(KafkaShareConsumer<String, String> consumer) throws Exception {
        for (int i = 0; i < 600; i++) {  // longer than the longest lock here
            List<ConsumerRecord<String, String>> found = new ArrayList<>();
            consumer.poll(Duration.ofMillis(100)).forEach(found::add);
            if (!found.isEmpty()) return found;
        }
        throw new Exception("no records");
    }

    static void nothing(KafkaShareConsumer<String, String> consumer) throws Exception {
        for (int i = 0; i < 5; i++) check("nothing comes", consumer.poll(Duration.ofMillis(100)).isEmpty());
    }

    static void check(String what, boolean holds, Object... seen) throws Exception {
        if (!holds) throw new Exception(what + " " + Arrays.toString(seen));
    }

    static void committed(Map<TopicIdPartition, Optional<KafkaException>> result) throws Exception {
        for (Map.Entry<TopicIdPartition, Optional<KafkaException>> e : result.entrySet()) check("committed", e.getValue().isEmpty(), e);
    }

    static long lag(String queue) throws Exception {
        return admin.listShareGroupOffsets(Map.of(queue, new ListShareGroupOffsetsSpec())).partitionsToOffsetInfo(queue).get()
            .get(new TopicPartition(queue, 0)).lag().orElse(-1L);
    }

    static void until(String what, Callable<Boolean> condition) throws Exception {
        long limit = System.nanoTime() + 60_000_000_000L;
        while (!condition.call()) {
            if (System.nanoTime() > limit) throw new Exception("waited too long for " + what);
            Thread.sleep(20);
        }
    }

    // the cases

    static void implicit() throws Exception {
        String queue = queue(100, Map.of());
        Set<String> seen = new TreeSet<>();
        try (KafkaShareConsumer<String, String> one = consumer(queue)) {
            while (seen.size() < 100) poll(one).forEach(r -> seen.add(r.value()));
            committed(one.commitSync());
            check("the consumer knows the lock's duration", one.acquisitionLockTimeoutMs().orElse(0) == 30_000, one.acquisitionLockTimeoutMs());
        }
        until("no lag", () -> lag(queue) == 0);
        try (KafkaShareConsumer<String, String> next = consumer(queue)) { nothing(next); }
    }

    static void explicit() throws Exception {
        String queue = queue(30, Map.of());
        Map<String, Short> counts = new HashMap<>();
        try (KafkaShareConsumer<String, String> one = consumer(queue, EXPLICIT)) {
            Set<String> accepted = new TreeSet<>();
            while (accepted.size() < 29) {
                for (ConsumerRecord<String, String> r : poll(one)) {
                    short count = r.deliveryCount().get();
                    counts.put(r.value(), count);
                    if (r.value().equals("13")) one.acknowledge(r, AcknowledgeType.REJECT);
                    else if (r.offset() % 7 == 3 && count < 3) one.acknowledge(r, AcknowledgeType.RELEASE);
                    else { one.acknowledge(r); accepted.add(r.value()); }
                }
                committed(one.commitSync());
            }
            check("what was released came again", counts.get("3") == 3, counts);
            check("what was rejected did not", counts.get("13") == 1, counts);
            nothing(one);
        }
        until("no lag", () -> lag(queue) == 0);
    }

    static void mustAcknowledge() throws Exception {
        String queue = queue(10, Map.of());
        try (KafkaShareConsumer<String, String> one = consumer(queue, EXPLICIT)) {
            List<ConsumerRecord<String, String>> found = poll(one);
            try {
                one.poll(Duration.ofMillis(100));
                throw new Exception("a poll with records that are not acknowledged");
            } catch (IllegalStateException expected) { }
            found.forEach(one::acknowledge);
            committed(one.commitSync());
        }
    }

    static void callbacks() throws Exception {
        String queue = queue(20, Map.of());
        Set<Long> told = ConcurrentHashMap.newKeySet();
        AtomicReference<Exception> failure = new AtomicReference<>();
        try (KafkaShareConsumer<String, String> one = consumer(queue, EXPLICIT)) {
            one.setAcknowledgementCommitCallback((offsets, error) -> {
                offsets.values().forEach(told::addAll);
                if (error != null) failure.set(error);
            });
            int count = 0;
            while (count < 20) {
                for (ConsumerRecord<String, String> r : poll(one)) { one.acknowledge(r); count++; }
                one.commitAsync();
            }
            until("the callback", () -> { one.poll(Duration.ofMillis(50)); return told.size() == 20; });
        }
        check("no failure", failure.get() == null, failure.get());
    }

    static void lateAcknowledgement() throws Exception {
        String queue = queue(10, Map.of("share.record.lock.duration.ms", "1000"));
        // a fetch of its own that waits for longer than the lock would get the records again
        String[] shortWaits = {"share.acknowledgement.mode", "explicit", "fetch.max.wait.ms", "100"};
        try (KafkaShareConsumer<String, String> one = consumer(queue, shortWaits); KafkaShareConsumer<String, String> other = consumer(queue, EXPLICIT)) {
            List<ConsumerRecord<String, String>> held = poll(one);
            // only the first lock is short: the other consumer has the time it needs
            configure(ConfigResource.Type.GROUP, queue, Map.of("share.record.lock.duration.ms", "15000"));
            List<ConsumerRecord<String, String>> again = poll(other);
            check("the lock ran out", again.get(0).deliveryCount().get() >= 2, again.get(0));
            held.forEach(one::acknowledge);
            boolean refused = one.commitSync().values().stream().anyMatch(Optional::isPresent);
            check("a late acknowledgement is refused", refused);
            again.forEach(other::acknowledge);
            committed(other.commitSync());
        }
    }

    static void renewing() throws Exception {
        String queue = queue(5, Map.of("share.record.lock.duration.ms", "3000"));
        try (KafkaShareConsumer<String, String> slow = consumer(queue, EXPLICIT); KafkaShareConsumer<String, String> other = consumer(queue, EXPLICIT)) {
            List<ConsumerRecord<String, String>> held = poll(slow);
            long limit = System.nanoTime() + 4_000_000_000L;  // longer than a lock
            while (System.nanoTime() < limit) {
                for (ConsumerRecord<String, String> r : held) slow.acknowledge(r, AcknowledgeType.RENEW);
                committed(slow.commitSync());
                held = poll(slow);
                check("they are its own, for the first time", held.size() == 5 && held.get(0).deliveryCount().get() == 1, held);
                ConsumerRecords<String, String> theirs = other.poll(Duration.ofMillis(400));
                check("no other consumer gets them", theirs.isEmpty(), theirs.count());
            }
            held.forEach(slow::acknowledge);
            committed(slow.commitSync());
            nothing(other);
        }
    }

    static void recordLimit() throws Exception {
        String queue = queue(100, Map.of());
        try (KafkaShareConsumer<String, String> one = consumer(queue, "share.acquire.mode", "record_limit", "max.poll.records", "3")) {
            int count = 0;
            while (count < 100) {
                int size = poll(one).size();
                check("no more than asked for", size <= 3, size);
                count += size;
            }
            committed(one.commitSync());
        }
        String batches = queue(100, Map.of());
        try (KafkaShareConsumer<String, String> one = consumer(batches, "share.acquire.mode", "batch_optimized", "max.poll.records", "3")) {
            check("whole batches", poll(one).size() >= 3);
        }
    }

    static void wakeupAndClose() throws Exception {
        String queue = queue(10, Map.of());
        KafkaShareConsumer<String, String> one = consumer(queue, EXPLICIT);
        check("ten", poll(one).size() == 10);
        one.close();
        try (KafkaShareConsumer<String, String> other = consumer(queue)) {
            check("a consumer that closes gives back what it held", poll(other).get(0).deliveryCount().get() == 2);
            committed(other.commitSync());
            nothing(other);
            new Thread(() -> { try { Thread.sleep(300); } catch (InterruptedException e) { } other.wakeup(); }).start();
            try {
                other.poll(Duration.ofSeconds(20));
                throw new Exception("not woken");
            } catch (WakeupException expected) { }
        }
    }

    static void poison() throws Exception {
        String dlq = "dlq." + UUID.randomUUID().toString().substring(0, 6);
        admin.createTopics(List.of(new NewTopic(dlq, 2, (short) 1).configs(Map.of("errors.deadletterqueue.group.enable", "true")))).all().get();
        String queue = queue(10, Map.of("errors.deadletterqueue.topic.name", dlq, "errors.deadletterqueue.copy.record.enable", "true", "share.delivery.count.limit", "3"));
        Set<String> good = new TreeSet<>();
        try (KafkaShareConsumer<String, String> one = consumer(queue, EXPLICIT)) {
            while (good.size() < 8) {
                for (ConsumerRecord<String, String> r : poll(one)) {
                    if (r.value().equals("4")) one.acknowledge(r, AcknowledgeType.REJECT);
                    else if (r.value().equals("7")) one.acknowledge(r, AcknowledgeType.RELEASE);
                    else { one.acknowledge(r); good.add(r.value()); }
                }
                committed(one.commitSync());
            }
            poisoned(one, dlq);
        }
        until("no lag", () -> lag(queue) == 0);
    }

    /** Releases what comes until the two dead letters are written. */
    static void poisoned(KafkaShareConsumer<String, String> one, String dlq) throws Exception {
        Map<String, String> dead = new TreeMap<>();
        Properties config = new Properties();
        config.put("bootstrap.servers", servers);
        config.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        config.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        try (KafkaConsumer<String, String> reader = new KafkaConsumer<>(config)) {
            List<TopicPartition> partitions = List.of(new TopicPartition(dlq, 0), new TopicPartition(dlq, 1));
            reader.assign(partitions);
            reader.seekToBeginning(partitions);
            until("two dead letters", () -> {
                one.poll(Duration.ofMillis(100)).forEach(r -> one.acknowledge(r, AcknowledgeType.RELEASE));
                committed(one.commitSync());
                for (ConsumerRecord<String, String> r : reader.poll(Duration.ofMillis(100)))
                    dead.put(r.value(), new String(r.headers().lastHeader("__dlq.errors.delivery.count").value()));
                return dead.size() == 2;
            });
        }
        check("poison", dead.equals(Map.of("4", "1", "7", "3")), dead);
    }

    static final String[] TWENTY = {"share.acknowledgement.mode", "explicit", "max.poll.records", "20", "share.acquire.mode", "record_limit"};

    /**
     * Twenty consumers on one partition, one of which is silent until its locks have ended. The locks of the others do not end, however busy the
     * machine is: who accepts records too late is told nothing when others accepted all of them, and then does not know that they were not its own.
     */
    static void many() throws Exception {
        int count = 2000, first = 20;
        String queue = queue(first, Map.of("share.record.lock.duration.ms", "2000"));
        Map<String, Queue<Short>> accepted = new ConcurrentHashMap<>();
        Set<Integer> busy = ConcurrentHashMap.newKeySet();
        List<Throwable> failures = new CopyOnWriteArrayList<>();
        List<Thread> threads = new ArrayList<>();
        AtomicBoolean stop = new AtomicBoolean();
        try (KafkaShareConsumer<String, String> silent = consumer(queue, TWENTY)) {
            List<ConsumerRecord<String, String>> held = poll(silent);
            configure(ConfigResource.Type.GROUP, queue, Map.of("share.record.lock.duration.ms", "15000"));
            for (int i = 1; i < 20; i++) {
                int number = i;
                threads.add(new Thread(() -> {
                    try (KafkaShareConsumer<String, String> one = consumer(queue, TWENTY)) {
                        while (!stop.get()) {
                            List<ConsumerRecord<String, String>> found = new ArrayList<>();
                            one.poll(Duration.ofMillis(100)).forEach(found::add);
                            if (found.isEmpty()) continue;
                            busy.add(number);
                            found.forEach(one::acknowledge);
                            committed(one.commitSync());
                            for (ConsumerRecord<String, String> r : found)
                                accepted.computeIfAbsent(r.value(), k -> new ConcurrentLinkedQueue<>()).add(r.deliveryCount().get());
                        }
                    } catch (Throwable t) {
                        failures.add(t);
                    }
                }));
            }
            threads.forEach(Thread::start);
            until("twenty members", () -> described(queue).members().size() == 20 || !failures.isEmpty());
            produce(queue, first, count - first);
            until("every record", () -> accepted.size() == count || !failures.isEmpty());
            stop.set(true);
            for (Thread thread : threads) thread.join();
            check("no failure", failures.isEmpty(), failures);
            check("each once", accepted.values().stream().allMatch(times -> times.size() == 1), accepted);
            check("what the silent one held came again", held.stream().allMatch(r -> accepted.get(r.value()).peek() >= 2), held, accepted);
            check("work is shared", busy.size() >= 10, busy.size());
            held.forEach(silent::acknowledge);
            silent.commitSync();
        }
        check("all have left", described(queue).members().isEmpty(), described(queue));
    }

    static ShareGroupDescription described(String group) throws Exception {
        return admin.describeShareGroups(List.of(group)).describedGroups().get(group).get();
    }

    static void administration() throws Exception {
        String queue = queue(50, Map.of());
        try (KafkaShareConsumer<String, String> one = consumer(queue)) {
            int count = 0;
            while (count < 50) count += poll(one).size();
            committed(one.commitSync());
            ShareGroupDescription live = described(queue);
            check("a member", live.members().size() == 1 && live.groupState().toString().equals("Stable"), live);
        }
        TopicPartition partition = new TopicPartition(queue, 0);
        until("empty", () -> described(queue).members().isEmpty());
        admin.alterShareGroupOffsets(queue, Map.of(partition, 45L)).all().get();
        check("lag", lag(queue) == 5, lag(queue));
        try (KafkaShareConsumer<String, String> one = consumer(queue)) {
            check("again from there", poll(one).get(0).offset() >= 40);
            committed(one.commitSync());
        }
        until("empty", () -> described(queue).members().isEmpty());
        admin.deleteShareGroupOffsets(queue, Set.of(queue)).all().get();
        admin.deleteShareGroups(List.of(queue)).all().get();
        check("gone", admin.listGroups().all().get().stream().noneMatch(g -> g.groupId().equals(queue)));
    }

    /** Records that are deleted, partitions that are added, and a topic that goes, under a live group. */
    static void trouble() throws Exception {
        String queue = queue(40, Map.of());
        try (KafkaShareConsumer<String, String> one = consumer(queue, "share.acknowledgement.mode", "explicit", "share.acquire.mode", "record_limit", "max.poll.records", "5", "metadata.max.age.ms", "500")) {
            poll(one).forEach(one::acknowledge);
            committed(one.commitSync());
            admin.deleteRecords(Map.of(new TopicPartition(queue, 0), RecordsToDelete.beforeOffset(20))).all().get();
            List<ConsumerRecord<String, String>> next = new ArrayList<>();
            while (next.isEmpty() || next.get(next.size() - 1).offset() < 39) {
                List<ConsumerRecord<String, String>> found = poll(one);
                found.forEach(one::acknowledge);
                one.commitSync();
                next.addAll(found);
            }
            until("no lag", () -> lag(queue) == 0);
            admin.createPartitions(Map.of(queue, NewPartitions.increaseTo(2))).all().get();
            until("the new partition", () -> {
                producer.send(new ProducerRecord<>(queue, 1, "k", "new")).get();
                boolean found = false;
                for (ConsumerRecord<String, String> r : one.poll(Duration.ofMillis(100))) {
                    one.acknowledge(r);
                    found |= r.partition() == 1;
                }
                return found;
            });
            one.commitSync();
            admin.deleteTopics(List.of(queue)).all().get();
            for (int i = 0; i < 10; i++) one.poll(Duration.ofMillis(100)).forEach(one::acknowledge);
        }
    }

    interface Case { void run() throws Exception; }

    public static void main(String[] args) throws Exception {
        servers = args[0];
        admin = Admin.create(Map.of("bootstrap.servers", servers));
        Properties config = new Properties();
        config.put("bootstrap.servers", servers);
        config.put("linger.ms", "1000");
        config.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        config.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        producer = new KafkaProducer<>(config);
        Map<String, Case> cases = new LinkedHashMap<>();
        cases.put("implicit", ShareClients::implicit);
        cases.put("explicit", ShareClients::explicit);
        cases.put("must acknowledge", ShareClients::mustAcknowledge);
        cases.put("callbacks", ShareClients::callbacks);
        cases.put("late acknowledgement", ShareClients::lateAcknowledgement);
        cases.put("renewing", ShareClients::renewing);
        cases.put("record limit", ShareClients::recordLimit);
        cases.put("wakeup and close", ShareClients::wakeupAndClose);
        cases.put("poison", ShareClients::poison);
        cases.put("many", ShareClients::many);
        cases.put("administration", ShareClients::administration);
        cases.put("trouble", ShareClients::trouble);
        for (Map.Entry<String, Case> one : cases.entrySet()) {
            if (args.length > 1 && !one.getKey().equals(args[1])) continue;
            long began = System.nanoTime();
            try {
                one.getValue().run();
            } catch (Throwable t) {
                throw new Exception(one.getKey(), t);
            }
            System.out.println(one.getKey() + " " + (System.nanoTime() - began) / 1_000_000 + " ms");
        }
        producer.close();
        admin.close();
        System.out.println("ok");
    }
}
