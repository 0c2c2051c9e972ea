import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;
import java.util.regex.Pattern;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;

/**
 * Kafka's own consumers in groups, against the broker of which the address is the first argument. Every case scales a group from one
 * member to four and back under traffic: no partition has two owners, nothing is lost, and what is committed is what was read.
 */
public class GroupClients {
    static final int PARTITIONS = 6;
    static final int RECORDS = 1500;
    static String servers;

    /** Which member owns which partition, by the calls of the listeners. */
    static class Owners {
        final Map<TopicPartition, String> owner = new ConcurrentHashMap<>();
        final List<String> wrong = new CopyOnWriteArrayList<>();

        void assigned(String who, Collection<TopicPartition> partitions) {
            for (TopicPartition p : partitions) {
                String before = owner.put(p, who);
                if (before != null && !before.equals(who)) wrong.add(p + " went to " + who + " while " + before + " had it");
            }
        }

        void revoked(String who, Collection<TopicPartition> partitions) {
            for (TopicPartition p : partitions) owner.remove(p, who);
        }
    }

    static class Member implements Runnable {
        final String name;
        final Properties config;
        final String topic;
        final boolean regex;
        final Owners owners;
        final Map<String, AtomicInteger> seen;
        final AtomicBoolean stop = new AtomicBoolean();
        volatile int owned = 0;
        volatile Throwable failure;
        final Thread thread = new Thread(this);

        Member(String name, Properties config, String topic, boolean regex, Owners owners, Map<String, AtomicInteger> seen) {
            this.name = name; this.config = config; this.topic = topic; this.regex = regex; this.owners = owners; this.seen = seen;
            thread.start();
        }

        public void run() {
            try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(config)) {
                ConsumerRebalanceListener listener = new ConsumerRebalanceListener() {
                    public void onPartitionsAssigned(Collection<TopicPartition> p) { owners.assigned(name, p); }
                    public void onPartitionsRevoked(Collection<TopicPartition> p) { owners.revoked(name, p); }
                    public void onPartitionsLost(Collection<TopicPartition> p) { owners.revoked(name, p); }
                };
                if (!regex) consumer.subscribe(List.of(topic), listener);
                else if ("consumer".equals(config.getProperty("group.protocol"))) consumer.subscribe(new SubscriptionPattern(topic + ".*"), listener);
                else consumer.subscribe(Pattern.compile(topic + ".*"), listener);
                while (!stop.get()) {
                    ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(50));
                    owned = consumer.assignment().size();
                    for (ConsumerRecord<String, String> r : records) seen.computeIfAbsent(r.value(), k -> new AtomicInteger()).incrementAndGet();
                    try {
                        if (!records.isEmpty()) consumer.commitSync(Duration.ofSeconds(30));
                    } catch (CommitFailedException | org.apache.kafka.common.errors.RebalanceInProgressException e) {
                        // what was read is read again by whoever has the partition now
                    }
                }
            } catch (Throwable t) {
                failure = t;
            }
        }

        void end() throws Exception { stop.set(true); thread.join(60_000); if (thread.isAlive()) throw new Exception(name + " does not end"); }
    }

    static void until(String what, BooleanSupplierX condition) throws Exception {
        long limit = System.nanoTime() + 40_000_000_000L;
        while (!condition.get()) {
            if (System.nanoTime() > limit) throw new Exception("waited too long for " + what);
            Thread.sleep(10);
        }
    }

    interface BooleanSupplierX { boolean get() throws Exception; }

    static void scale(String label, String protocol, Map<String, String> more, boolean isStatic, boolean regex) throws Exception {
        long began = System.nanoTime();
        String topic = "java-" + label, group = "group-" + label;
        Owners owners = new Owners();
        Map<String, AtomicInteger> seen = new ConcurrentHashMap<>();
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", servers))) {
            admin.createTopics(List.of(new NewTopic(topic, PARTITIONS, (short) 1))).all().get();
            Properties producing = new Properties();
            producing.put("bootstrap.servers", servers);
            producing.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
            producing.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
            Thread traffic = new Thread(() -> {
                try (KafkaProducer<String, String> producer = new KafkaProducer<>(producing)) {
                    for (int n = 0; n < RECORDS; n++) {
                        producer.send(new ProducerRecord<>(topic, n % PARTITIONS, null, "" + n));
                        if (n % 10 == 0) Thread.sleep(10);
                    }
                } catch (InterruptedException e) {
                    throw new RuntimeException(e);
                }
            });
            traffic.start();
            List<Member> members = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                Properties config = new Properties();
                config.put("bootstrap.servers", servers);
                config.put("group.id", group);
                config.put("client.id", "client-" + i);
                config.put("group.protocol", protocol);
                config.put("auto.offset.reset", "earliest");
                config.put("enable.auto.commit", "false");
                config.put("metadata.max.age.ms", "500");
                config.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
                config.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
                if (protocol.equals("classic")) { config.put("heartbeat.interval.ms", "150"); config.put("session.timeout.ms", "30000"); }
                if (isStatic) config.put("group.instance.id", "instance-" + i);
                config.putAll(more);
                members.add(new Member("m" + i, config, topic, regex, owners, seen));
                if (i == 0) until("the first member to have everything", () -> members.get(0).owned == PARTITIONS);
            }
            until("four members to share", () -> members.stream().allMatch(m -> m.owned >= 1) && members.stream().mapToInt(m -> m.owned).sum() == PARTITIONS);
            for (int i = 1; i < 4; i++) members.get(i).end();
            if (!isStatic || protocol.equals("classic")) {
                if (isStatic) admin.removeMembersFromConsumerGroup(group, new RemoveMembersFromConsumerGroupOptions(List.of(
                    new MemberToRemove("instance-1"), new MemberToRemove("instance-2"), new MemberToRemove("instance-3")))).all().get();
                until("the first member to have everything again", () -> members.get(0).owned == PARTITIONS);
                traffic.join();
                until("every record", () -> seen.size() == RECORDS);
                until("commits", () -> {
                    long sum = 0;
                    for (OffsetAndMetadata o : admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().values()) sum += o == null ? 0 : o.offset();
                    return sum == RECORDS;
                });
            }
            members.get(0).end();
            traffic.join();
            for (Member m : members) if (m.failure != null) throw new Exception(label + ": " + m.name + " failed", m.failure);
            if (!owners.wrong.isEmpty()) throw new Exception(label + ": " + owners.wrong);
        }
        System.out.println(label + " ok in " + (System.nanoTime() - began) / 1_000_000 + " ms");
    }

    public static void main(String[] arguments) throws Exception {
        servers = arguments[0];
        String package_ = "org.apache.kafka.clients.consumer.";
        for (String assignor : List.of("RangeAssignor", "RoundRobinAssignor", "StickyAssignor", "CooperativeStickyAssignor"))
            scale("classic-" + assignor, "classic", Map.of("partition.assignment.strategy", package_ + assignor), false, false);
        for (String assignor : List.of("uniform", "range"))
            scale("consumer-" + assignor, "consumer", Map.of("group.remote.assignor", assignor), false, false);
        scale("classic-static", "classic", Map.of(), true, false);
        scale("consumer-static", "consumer", Map.of(), true, false);
        scale("classic-regex", "classic", Map.of(), false, true);
        scale("consumer-regex", "consumer", Map.of(), false, true);
        System.out.println("ok");
    }
}
