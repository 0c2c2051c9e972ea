import java.time.Duration;
import java.util.*;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.errors.*;
import org.apache.kafka.common.header.internals.RecordHeader;

/**
 * Kafka's own producer, consumer and admin client, against the broker of which the address is the first argument: every codec, with and
 * without idempotence, with acks 0, 1 and all; reading from offsets and times; and the errors that each of them must meet.
 */
public class PlainClients {
    static final int RECORDS = 200;
    static final long BEGAN = System.currentTimeMillis() - 60_000;
    static String servers;
    static Admin admin;

    static void check(String what, Object expected, Object found) throws Exception {
        if (!Objects.equals(expected, found)) throw new Exception(what + ": " + found + " instead of " + expected);
    }

    static <E extends Throwable> void refused(String what, Class<E> kind, Callable<?> call) throws Exception {
        Throwable met = null;
        try {
            call.call();
        } catch (ExecutionException e) {
            met = e.getCause();
        } catch (Exception e) {
            met = e;
        }
        if (!kind.isInstance(met)) throw new Exception(what + ": " + met + " instead of " + kind.getSimpleName());
    }

    static KafkaProducer<String, String> producer(Object... more) {
        Properties config = new Properties();
        config.put("bootstrap.servers", servers);
        config.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        config.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        for (int i = 0; i < more.length; i += 2) config.put(more[i], more[i + 1]);
        return new KafkaProducer<>(config);
    }

    static KafkaConsumer<String, String> consumer() {
        Properties config = new Properties();
        config.put("bootstrap.servers", servers);
        config.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        config.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        config.put("auto.offset.reset", "none");
        config.put("enable.auto.commit", "false");
        config.put("allow.auto.create.topics", "false");
        config.put("fetch.max.wait.ms", "20");
        return new KafkaConsumer<>(config);
    }

    static List<ConsumerRecord<String, String>> read(KafkaConsumer<String, String> consumer, TopicPartition from, long offset, int count) throws Exception {
        consumer.assign(List.of(from));
        consumer.seek(from, offset);
        List<ConsumerRecord<String, String>> found = new ArrayList<>();
        long until = System.currentTimeMillis() + 20_000;
        while (found.size() < count) {
            if (System.currentTimeMillis() > until) throw new Exception(found.size() + " of " + count + " records of " + from);
            consumer.poll(Duration.ofMillis(500)).forEach(found::add);
        }
        return found;
    }

    /** Returns when the partition has a leader that answers: a broker that knows a topic but does not lead it yet loses records of acks 0. */
    static void ready(TopicPartition partition) throws Exception {
        for (;;) {
            try {
                admin.listOffsets(Map.of(partition, OffsetSpec.latest())).all().get();
                return;
            } catch (ExecutionException e) {
                if (!(e.getCause() instanceof UnknownTopicOrPartitionException)) throw e;
            }
        }
    }

    static void producedAndRead(String codec, boolean idempotent, String acks) throws Exception {
        String topic = "plain-" + codec + "-" + idempotent + "-" + acks;
        admin.createTopics(List.of(new NewTopic(topic, 2, (short) 1))).all().get();
        if (acks.equals("0")) ready(new TopicPartition(topic, 1));
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (KafkaProducer<String, String> producer = producer("compression.type", codec, "enable.idempotence", idempotent, "acks", acks)) {
            for (int n = 0; n < RECORDS; n++) {
                sent.add(producer.send(new ProducerRecord<>(topic, 1, BEGAN + n, "k" + n, "v" + n, List.of(new RecordHeader("h", new byte[] {1})))));
            }
        }
        for (int n = 0; n < RECORDS; n++) {
            RecordMetadata told = sent.get(n).get();
            if (!acks.equals("0")) check(topic + ": offset", (long) n, told.offset());
        }
        TopicPartition partition = new TopicPartition(topic, 1);
        try (KafkaConsumer<String, String> consumer = consumer()) {
            List<ConsumerRecord<String, String>> found = read(consumer, partition, 0, RECORDS);
            for (int n = 0; n < RECORDS; n++) {
                ConsumerRecord<String, String> r = found.get(n);
                check(topic, List.of((long) n, "k" + n, "v" + n, BEGAN + n), List.of(r.offset(), r.key(), r.value(), r.timestamp()));
                check(topic + ": headers", "h", r.headers().iterator().next().key());
            }
            check(topic + ": from an offset", "v150", read(consumer, partition, 150, 1).get(0).value());
            check(topic + ": from a time", 77L, consumer.offsetsForTimes(Map.of(partition, BEGAN + 77)).get(partition).offset());
            check(topic + ": beyond the last time", null, consumer.offsetsForTimes(Map.of(partition, BEGAN + RECORDS)).get(partition));
            check(topic + ": ends", Map.of(partition, (long) RECORDS), consumer.endOffsets(List.of(partition)));
            check(topic + ": starts", Map.of(partition, 0L), consumer.beginningOffsets(List.of(partition)));
        }
    }

    static void errors() throws Exception {
        String topic = "plain-none-true-all";
        try (KafkaProducer<String, String> large = producer("max.request.size", 8_000_000, "batch.size", 8_000_000)) {
            ProducerRecord<String, String> record = new ProducerRecord<>(topic, "x".repeat(2_000_000));
            refused("a record that is too large", RecordTooLargeException.class, () -> large.send(record).get());
        }
        try (KafkaProducer<String, String> producer = producer("max.block.ms", 3_000)) {
            refused("a name that no topic may have", InvalidTopicException.class, () -> producer.send(new ProducerRecord<>("no topic!", "x")).get());
            refused("a partition that is not there", TimeoutException.class, () -> producer.send(new ProducerRecord<>(topic, 7, "k", "x")).get());
        }
        try (KafkaConsumer<String, String> consumer = consumer()) {
            TopicPartition partition = new TopicPartition(topic, 1);
            refused("an offset beyond the end", org.apache.kafka.clients.consumer.OffsetOutOfRangeException.class, () -> read(consumer, partition, 4711, 1));
            check("a topic that is not there", List.of(), Objects.requireNonNullElse(consumer.partitionsFor("no-such-topic"), List.of()));
        }
        refused("a topic that is not there", UnknownTopicOrPartitionException.class, () -> admin.describeTopics(List.of("no-such-topic")).allTopicNames().get());
        refused("a topic that is there", TopicExistsException.class, () -> admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get());
        refused("fewer partitions", InvalidPartitionsException.class, () -> admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(1))).all().get());
    }

    public static void main(String[] args) throws Exception {
        servers = args[0];
        admin = Admin.create(Map.of("bootstrap.servers", servers));
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            producedAndRead(codec, true, "all");
            for (String acks : List.of("0", "1", "all")) producedAndRead(codec, false, acks);
        }
        errors();
        admin.close();
        System.out.println("ok");
    }
}
