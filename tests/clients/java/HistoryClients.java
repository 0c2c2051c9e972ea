import java.time.Duration;
import java.util.*;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.*;

/** Kafka's own clients at work until the input ends; what each line of the journal means is in history.py. */
public class HistoryClients {
    static final Set<String> acked = ConcurrentHashMap.newKeySet();
    static volatile boolean enough = false, produced = false;
    static String servers;

    static synchronized void say(Object... words) {
        StringBuilder line = new StringBuilder();
        for (Object word : words) line.append(line.length() == 0 ? "" : " ").append(word);
        System.out.println(line);
    }

    static Properties config(String... more) {
        Properties config = new Properties();
        config.put("bootstrap.servers", servers);
        config.put("request.timeout.ms", "4000");
        for (String side : List.of("key", "value")) {
            config.put(side + ".serializer", "org.apache.kafka.common.serialization.StringSerializer");
            config.put(side + ".deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        }
        for (int i = 0; i < more.length; i += 2) config.put(more[i], more[i + 1]);
        return config;
    }

    static void produce() throws Exception {
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(config("acks", "all"))) {
            for (int n = 0; !enough; n++) {
                String value = "" + n;
                producer.send(new ProducerRecord<>("java", value, value), (at, error) -> {
                    if (error == null) acked.add(value);
                    say(error == null ? "acked" : "lost", value);
                });
                Thread.sleep(30);
            }
        }
        produced = true;
    }

    /** One member of a group reads everything, and commits what it has read. */
    static void consume(String protocol) throws Exception {
        String group = "java-" + protocol;
        Properties config = config("group.id", group, "group.protocol", protocol, "auto.offset.reset", "earliest", "enable.auto.commit", "false");
        Set<String> seen = new HashSet<>();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(config)) {
            consumer.subscribe(List.of("java"));
            while (!produced || !seen.containsAll(acked)) {
                Thread.sleep(200);  // some records for each commit
                ConsumerRecords<String, String> some = consumer.poll(Duration.ofMillis(100));
                for (ConsumerRecord<String, String> r : some) {
                    seen.add(r.value());
                    say("read", group, r.partition(), r.offset(), r.value());
                }
                if (some.isEmpty()) continue;
                Map<TopicPartition, OffsetAndMetadata> next = some.nextOffsets();
                try {
                    consumer.commitSync(next, Duration.ofSeconds(10));
                    next.forEach((at, offset) -> say("committed", group, at.partition(), offset.offset()));
                } catch (CommitFailedException | RetriableException missed) {
                    say("note", group, missed);
                }
            }
        }
    }

    static void share() throws Exception {
        Set<String> seen = new HashSet<>();
        try (KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(config("group.id", "java-share"))) {
            consumer.subscribe(List.of("java"));
            while (!produced || !seen.containsAll(acked)) {
                Thread.sleep(200);
                Map<Integer, List<String>> some = new HashMap<>();
                consumer.poll(Duration.ofMillis(100)).forEach(r -> some.computeIfAbsent(r.partition(), p -> new ArrayList<>()).add(r.value()));
                Map<Integer, Optional<KafkaException>> outcome = new HashMap<>();
                consumer.commitSync().forEach((at, error) -> outcome.put(at.partition(), error));
                for (Map.Entry<Integer, List<String>> e : some.entrySet()) {
                    Optional<KafkaException> error = outcome.get(e.getKey());
                    if (error != null && error.isPresent()) say("note", "share", error.get());
                    for (String value : e.getValue()) {
                        seen.add(value);
                        say(error != null && error.isEmpty() ? "accepted" : "unsure", value);
                    }
                }
            }
        }
    }

    /** Transactions of three records, each in a partition of its own, and of an offset. */
    static void transact() throws Exception {
        KafkaProducer<String, String> producer = null;
        for (int n = 0; !enough; n++) {
            boolean commits = false;
            try {
                if (producer == null) {
                    producer = new KafkaProducer<>(config("transactional.id", "java"));
                    producer.initTransactions();
                }
                producer.beginTransaction();
                for (int part = 0; part < 3; part++) producer.send(new ProducerRecord<>("java-whole", part, null, n + "-" + part));
                producer.sendOffsetsToTransaction(Map.of(new TopicPartition("java", 0), new OffsetAndMetadata(n)), new ConsumerGroupMetadata("java-whole"));
                commits = true;
                for (boolean done = false; !done; ) {
                    try {
                        producer.commitTransaction();
                        done = true;
                    } catch (TimeoutException again) {
                        say("note", "commit", n, again);
                    }
                }
                say("whole", n);
            } catch (KafkaException failed) {
                say("note", "transaction", n, failed);
                say(commits ? "doubtful" : "aborted", n);
                try {
                    producer.abortTransaction();
                } catch (KafkaException fatal) {
                    producer.close(Duration.ZERO);
                    producer = null;
                }
            }
            Thread.sleep(100);
        }
        if (producer != null) producer.close();
    }

    public static void main(String[] args) throws Exception {
        servers = args[0];
        ExecutorService threads = Executors.newCachedThreadPool();
        List<Callable<Object>> work = List.of(
            () -> { produce(); return null; }, () -> { transact(); return null; }, () -> { share(); return null; },
            () -> { consume("classic"); return null; }, () -> { consume("consumer"); return null; });
        List<Future<Object>> running = new ArrayList<>();
        for (Callable<Object> one : work) running.add(threads.submit(one));
        while (System.in.read() >= 0) continue;
        enough = true;
        for (Future<Object> one : running) one.get(90, TimeUnit.SECONDS);
        say("ok");
        System.exit(0);
    }
}
