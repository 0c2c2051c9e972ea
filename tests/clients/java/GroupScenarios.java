import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;

/**
 * The examples that textbooks give of assignors and commits, with Kafka's own consumers, against the broker of which the address is the
 * first argument: what moves and what does not, who consumes meanwhile, and in which order commits are answered.
 */
public class GroupScenarios {
    static final String ASSIGNORS = "org.apache.kafka.clients.consumer.";
    static String servers;

    static class Member implements Runnable {
        final String group, assignor;
        final List<String> topics;
        final Thread thread = new Thread(this);
        final Set<TopicPartition> revoked = ConcurrentHashMap.newKeySet();
        final Map<TopicPartition, List<Long>> seen = new ConcurrentHashMap<>();
        volatile Set<TopicPartition> owned = Set.of();
        volatile boolean stop;

        Member(String group, String assignor, String... topics) {
            this.group = group; this.assignor = assignor; this.topics = List.of(topics);
            thread.setDaemon(true);
            thread.start();
        }

        public void run() {
            try (KafkaConsumer<String, String> consumer = consumer(group, Map.of("partition.assignment.strategy", ASSIGNORS + assignor))) {
                consumer.subscribe(topics, new ConsumerRebalanceListener() {
                    public void onPartitionsAssigned(Collection<TopicPartition> p) { }
                    public void onPartitionsRevoked(Collection<TopicPartition> p) { revoked.addAll(p); }
                });
                while (!stop) {
                    for (ConsumerRecord<String, String> r : consumer.poll(Duration.ofMillis(5)))
                        seen.computeIfAbsent(new TopicPartition(r.topic(), r.partition()), k -> new CopyOnWriteArrayList<>()).add(System.nanoTime());
                    owned = Set.copyOf(consumer.assignment());
                }
            }
        }

        void leave() throws Exception { stop = true; thread.join(); }
    }

    static KafkaConsumer<String, String> consumer(String group, Map<String, String> more) {
        Properties config = new Properties();
        config.put("bootstrap.servers", servers);
        config.put("group.id", group);
        config.put("group.protocol", "classic");
        config.put("auto.offset.reset", "earliest");
        config.put("enable.auto.commit", "false");
        config.put("heartbeat.interval.ms", "200");
        config.put("session.timeout.ms", "30000");
        config.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        config.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        config.putAll(more);
        return new KafkaConsumer<>(config);
    }

    interface Condition { boolean holds() throws Exception; }

    static void until(String what, Condition condition) throws Exception {
        long limit = System.nanoTime() + 40_000_000_000L;
        while (!condition.holds()) {
            if (System.nanoTime() > limit) throw new Exception("waited too long for " + what);
            Thread.sleep(2);
        }
    }

    static void check(boolean holds, String what) throws Exception { if (!holds) throw new Exception(what); }

    static String[] topics(Admin admin, String prefix, int... partitions) throws Exception {
        List<NewTopic> made = new ArrayList<>();
        for (int i = 0; i < partitions.length; i++) made.add(new NewTopic(prefix + "-" + (char) ('A' + i), partitions[i], (short) 1));
        admin.createTopics(made).all().get();
        return made.stream().map(NewTopic::name).toArray(String[]::new);
    }

    static void settle(int partitions, Integer[] sizes, Member... members) throws Exception {
        until(Arrays.toString(sizes), () -> {
            Set<TopicPartition> all = new HashSet<>();
            List<Integer> found = new ArrayList<>();
            for (Member m : members) { all.addAll(m.owned); found.add(m.owned.size()); }
            found.sort(Comparator.reverseOrder());
            return all.size() == partitions && found.equals(List.of(sizes));
        });
    }

    /** Nine partitions, three members, one leaves: the eager sticky assignor revokes everything and moves three, where round robin moves six. */
    static void sticky(Admin admin) throws Exception {
        String[] topics = topics(admin, "sticky", 5, 4);
        Member[] m = new Member[3];
        for (int i = 0; i < 3; i++) m[i] = new Member("sticky", "StickyAssignor", topics);
        settle(9, new Integer[] {3, 3, 3}, m);
        List<Set<TopicPartition>> before = List.of(m[0].owned, m[1].owned, m[2].owned);
        m[0].revoked.clear(); m[2].revoked.clear();
        m[1].leave();
        settle(9, new Integer[] {5, 4}, m[0], m[2]);
        check(m[0].owned.containsAll(before.get(0)) && m[2].owned.containsAll(before.get(2)), "who stays keeps its own");
        check(m[0].revoked.equals(before.get(0)) && m[2].revoked.equals(before.get(2)), "eager: everything is given back first");
        m[0].leave(); m[2].leave();
        System.out.println("sticky: 3 moved");
    }

    /** KIP-54's example: subscriptions of one, two and three topics with one, two and three partitions. Only sticky ones have one answer. */
    static void unequal(Admin admin, String assignor, Integer[] sizes) throws Exception {
        String[] t = topics(admin, "unequal-" + assignor, 1, 2, 3);
        Member[] m = {
            new Member("unequal-" + assignor, assignor, t[0]), new Member("unequal-" + assignor, assignor, t[0], t[1]),
            new Member("unequal-" + assignor, assignor, t[0], t[1], t[2])
        };
        settle(6, sizes, m);
        for (Member one : m)
            for (TopicPartition p : one.owned) check(one.topics.contains(p.topic()), p + " is with a member that is not subscribed to it");
        for (Member one : m) one.leave();
        System.out.println("unequal " + assignor + ": " + Arrays.toString(sizes));
    }

    /** Two members of three partitions become three of two. What stays is consumed throughout; the pause of what moves is printed. */
    static void cooperative(Admin admin) throws Exception {
        String topic = topics(admin, "cooperative", 6)[0];
        Member first = new Member("cooperative", "CooperativeStickyAssignor", topic), second = new Member("cooperative", "CooperativeStickyAssignor", topic);
        settle(6, new Integer[] {3, 3}, first, second);
        Thread traffic = new Thread(() -> {
            Map<String, Object> config = Map.of("bootstrap.servers", servers, "linger.ms", 0,
                "key.serializer", "org.apache.kafka.common.serialization.StringSerializer",
                "value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
            try (KafkaProducer<String, String> producer = new KafkaProducer<>(config)) {
                for (int n = 0; !Thread.interrupted(); n++) {
                    producer.send(new ProducerRecord<>(topic, n % 6, null, "" + n));
                    if (n % 6 == 5) Thread.sleep(2);
                }
            } catch (InterruptedException | org.apache.kafka.common.errors.InterruptException e) {
                // the end of the traffic
            }
        });
        traffic.start();
        until("traffic", () -> first.seen.size() + second.seen.size() == 6);
        first.revoked.clear(); second.revoked.clear();
        long joins = System.nanoTime();
        Member third = new Member("cooperative", "CooperativeStickyAssignor", topic);
        settle(6, new Integer[] {2, 2, 2}, first, second, third);
        until("the third to consume", () -> third.seen.keySet().equals(third.owned));
        long settled = System.nanoTime();
        traffic.interrupt(); traffic.join();
        Set<TopicPartition> moved = third.owned, revoked = new HashSet<>(first.revoked);
        revoked.addAll(second.revoked);
        check(revoked.equals(moved), "only what moves is revoked: " + revoked + " of " + moved);
        long stayed = 0, pause = 0;
        for (Member m : List.of(first, second)) {
            for (TopicPartition p : m.owned) {
                List<Long> within = m.seen.get(p).stream().filter(at -> at > joins && at < settled).toList();
                check(within.size() > 5, p + " stays, and was consumed " + within.size() + " times meanwhile");
                for (int i = 1; i < within.size(); i++) stayed = Math.max(stayed, within.get(i) - within.get(i - 1));
            }
        }
        for (TopicPartition p : moved) {
            Member before = first.seen.containsKey(p) ? first : second;
            List<Long> there = before.seen.get(p);
            pause = Math.max(pause, third.seen.get(p).get(0) - there.get(there.size() - 1));
        }
        for (Member m : List.of(first, second, third)) m.leave();
        System.out.println("cooperative: what stays pauses " + stayed / 1_000_000 + " ms at most, what moves " + pause / 1_000_000 + " ms");
    }

    /**
     * Commits that nothing waits for are answered in their order, and the last one stands; a member that was removed gets an error. Two
     * threads of this consumer take the replies: a reply that the heartbeat thread takes may be handed on after later ones.
     */
    static void commitAsync(Admin admin) throws Exception {
        TopicPartition p = new TopicPartition(topics(admin, "async", 1)[0], 0);
        try (KafkaConsumer<String, String> consumer = consumer("async", Map.of())) {
            consumer.subscribe(List.of(p.topic()));
            until("an assignment", () -> { consumer.poll(Duration.ofMillis(20)); return consumer.assignment().contains(p); });
            consumer.position(p); // else `committed` may return what the poll asked for, and has not looked at yet
            List<Long> answered = new CopyOnWriteArrayList<>();
            for (long offset = 1; offset <= 50; offset++)
                consumer.commitAsync(Map.of(p, new OffsetAndMetadata(offset)), (offsets, error) -> {
                    answered.add(error == null ? offsets.get(p).offset() : -1);
                });
            consumer.commitSync(Map.of(p, new OffsetAndMetadata(51)));
            until("all replies", () -> { consumer.poll(Duration.ZERO); return answered.size() == 50; });
            List<Long> wanted = new ArrayList<>();
            for (long offset = 1; offset <= 50; offset++) wanted.add(offset);
            check(answered.stream().sorted().toList().equals(wanted), "all of them: " + answered);
            long late = 0;
            for (int i = 1; i < 50; i++) if (answered.get(i) < answered.get(i - 1)) late++;
            check(late <= 5, "in order, but for replies that the heartbeat thread took: " + answered);
            check(consumer.committed(Set.of(p)).get(p).offset() == 51, "the last one stands");
            admin.removeMembersFromConsumerGroup("async", new RemoveMembersFromConsumerGroupOptions()).all().get();
            List<Exception> failures = new ArrayList<>();
            consumer.commitAsync(Map.of(p, new OffsetAndMetadata(99)), (offsets, error) -> failures.add(error));
            until("a failure", () -> { consumer.poll(Duration.ofMillis(20)); return !failures.isEmpty(); });
            // The heartbeat thread of the consumer sends requests too. If its heartbeat returns UNKNOWN_MEMBER_ID before the commit does,
            // the consumer has already begun to join again, and reports a rebalance in progress: ConsumerCoordinator compares generations.
            check(failures.get(0) instanceof CommitFailedException || failures.get(0) instanceof RebalanceInProgressException, "" + failures);
            check(admin.listConsumerGroupOffsets("async").partitionsToOffsetAndMetadata().get().get(p).offset() == 51, "nothing was committed");
        }
        System.out.println("commitAsync: 50 answered, one failed");
    }

    public static void main(String[] arguments) throws Exception {
        servers = arguments[0];
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", servers))) {
            sticky(admin);
            unequal(admin, "StickyAssignor", new Integer[] {3, 2, 1});
            unequal(admin, "CooperativeStickyAssignor", new Integer[] {3, 2, 1});
            cooperative(admin);
            commitAsync(admin);
        }
        System.out.println("ok");
    }
}
