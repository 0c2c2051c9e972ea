import java.time.Duration;
import java.util.*;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.serialization.*;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.state.Stores;

/**
 * A word count with exactly_once_v2 and group.protocol=streams, against the broker of which the address is the first argument: from one instance
 * to two and back while words come in. Each word is counted once. It prints what Admin describes, and `ok`.
 */
public class StreamsGroup {
    static final int PARTITIONS = 4, ROUNDS = 3, LINES = 60;
    static final List<String> WORDS = List.of("to", "be", "or", "not");

    static KafkaStreams instance(String servers, String application, String state) {
        Properties config = new Properties();
        config.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, servers);
        config.put(StreamsConfig.APPLICATION_ID_CONFIG, application);
        config.put(StreamsConfig.GROUP_PROTOCOL_CONFIG, "streams");
        config.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        config.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        config.put(StreamsConfig.STATE_DIR_CONFIG, state);
        config.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        config.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        config.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        config.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(application + "-in")
            .flatMapValues(line -> List.of(line.split(" ")))
            .groupBy((key, word) -> word)
            .count(Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("counts")).withCachingDisabled())
            .toStream()
            .mapValues(count -> Long.toString(count))
            .to(application + "-out");
        return new KafkaStreams(builder.build(), config);
    }

    static int tasks(KafkaStreams streams) {
        return streams.metadataForLocalThreads().stream().mapToInt(thread -> thread.activeTasks().size()).sum();
    }

    static boolean runs(KafkaStreams streams, int count) {
        return streams.state() == KafkaStreams.State.RUNNING && tasks(streams) == count;
    }

    static StreamsGroupDescription described(Admin admin, String application) {
        try {
            return admin.describeStreamsGroups(List.of(application)).all().get().get(application);
        } catch (Exception error) {
            throw new RuntimeException(error);
        }
    }

    static void until(String what, BooleanSupplier condition) throws Exception {
        long began = System.nanoTime();
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() - began > 120_000_000_000L) throw new Exception("waited too long for " + what);
            Thread.sleep(5);
        }
        System.out.println(what + " " + (System.nanoTime() - began) / 1_000_000);
    }

    static void say(Producer<String, String> producer, String application) {
        for (int line = 0; line < LINES; line++)
            producer.send(new ProducerRecord<>(application + "-in", line % PARTITIONS, null, String.join(" ", WORDS)));
        producer.flush();
    }

    /** Reads the counts until each word has the number that it must have in the end; each number comes once. */
    static void count(String servers, String application, int each) throws Exception {
        Map<String, Object> config = Map.of("bootstrap.servers", servers, "isolation.level", "read_committed", "auto.offset.reset", "earliest");
        Map<String, List<Integer>> seen = new TreeMap<>();
        try (Consumer<String, String> consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
            TopicPartition out = new TopicPartition(application + "-out", 0);
            consumer.assign(List.of(out));
            consumer.seekToBeginning(List.of(out));
            until("counted", () -> {
                for (ConsumerRecord<String, String> one : consumer.poll(Duration.ofMillis(100)))
                    seen.computeIfAbsent(one.key(), word -> new ArrayList<>()).add(Integer.valueOf(one.value()));
                return seen.size() == WORDS.size() && seen.values().stream().allMatch(counts -> counts.size() >= each);
            });
        }
        for (Map.Entry<String, List<Integer>> one : seen.entrySet())
            for (int number = 0; number < each; number++)
                if (one.getValue().size() != each || one.getValue().get(number) != number + 1) throw new Exception(one.toString());
    }

    public static void main(String[] arguments) throws Exception {
        String servers = arguments[0], application = arguments[1], state = arguments[2];
        Map<String, Object> config = Map.of("bootstrap.servers", servers);
        try (Admin admin = Admin.create(config);
             Producer<String, String> producer = new KafkaProducer<>(config, new StringSerializer(), new StringSerializer())) {
            admin.createTopics(List.of(new NewTopic(application + "-in", PARTITIONS, (short) 1), new NewTopic(application + "-out", 1, (short) 1))).all().get();
            KafkaStreams first = instance(servers, application, state + "/1");
            first.start();
            until("one", () -> runs(first, 2 * PARTITIONS));
            say(producer, application);
            KafkaStreams second = instance(servers, application, state + "/2");
            second.start();
            until("two", () -> runs(first, PARTITIONS) && runs(second, PARTITIONS));
            until("stable", () -> described(admin, application).groupState() == GroupState.STABLE);
            StreamsGroupDescription group = described(admin, application);
            System.out.println("group " + group.members().size() + " " + group.subtopologies().size());
            say(producer, application);
            second.close();
            until("back", () -> runs(first, 2 * PARTITIONS));
            say(producer, application);
            count(servers, application, ROUNDS * LINES);
            first.close();
            until("empty", () -> described(admin, application).members().isEmpty());
            admin.deleteStreamsGroups(List.of(application)).all().get();
        }
        System.out.println("ok");
        System.exit(0);
    }
}
