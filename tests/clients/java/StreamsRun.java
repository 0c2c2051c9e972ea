import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.function.UnaryOperator;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.*;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers;
import org.apache.kafka.streams.state.Stores;

/** One run of a program: the broker, an application id of its own, the application's instances, and what they log. */
public class StreamsRun implements AutoCloseable {
    /** What is waited for. */
    interface Condition {
        boolean holds() throws Exception;
    }

    static final int WITHIN_SECONDS = 110;
    static final String[] WORDS = {"to", "be", "or", "not"};

    final String servers, id, state;
    final Map<String, String> options;
    final UnaryOperator<String> asks;
    final Admin admin;
    final Producer<String, String> producer;
    final List<KafkaStreams> instances = new CopyOnWriteArrayList<>();
    /** How often each word was written since the counts began. */
    final Map<String, Integer> said = new ConcurrentHashMap<>();
    /** How often it was written before that, each time that the counts began again. */
    final List<Map<String, Integer>> before = new ArrayList<>();
    private int changes = 0;

    /** `asks` has the test do something, such as to kill the broker, and returns its answer. */
    StreamsRun(String id, Map<String, String> options, UnaryOperator<String> asks) {
        this.id = id;
        this.options = options;
        this.asks = asks;
        servers = options.get("servers");
        state = options.get("state") + "/" + id;
        admin = Admin.create(clients(options.get("admin")));
        producer = new KafkaProducer<>(clients(options.get("admin")), new StringSerializer(), new StringSerializer());
    }

    /** The configuration of clients that log in as a user, or not at all. */
    Map<String, Object> clients(String user) {
        Map<String, Object> config = new HashMap<>(Map.of("bootstrap.servers", servers));
        if (user != null)
            config.putAll(Map.of("security.protocol", "SASL_PLAINTEXT", "sasl.mechanism", "PLAIN", "sasl.jaas.config",
                "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"" + user + "\" password=\"" + user + "-secret\";"));
        return config;
    }

    /** The configuration of an instance: exactly once, states in memory. */
    Properties config(Object... changes) {
        Properties config = new Properties();
        config.putAll(clients(options.get("user")));
        config.put(StreamsConfig.APPLICATION_ID_CONFIG, id);
        config.put(StreamsConfig.GROUP_PROTOCOL_CONFIG, "streams");
        config.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        config.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        config.put(StreamsConfig.STATE_DIR_CONFIG, state + "/" + instances.size());
        config.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 1);
        config.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        config.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        config.put(StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG, BuiltInDslStoreSuppliers.InMemoryDslStoreSuppliers.class);
        config.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
        config.put(StreamsConfig.consumerPrefix("metadata.max.age.ms"), 500);
        config.put(StreamsConfig.producerPrefix("transaction.timeout.ms"), 30_000);
        for (int at = 0; at < changes.length; at += 2) config.put(changes[at], changes[at + 1]);
        return config;
    }

    KafkaStreams start(Topology topology, Object... changes) {
        return start(topology, new StreamsConfig(config(changes)));
    }

    KafkaStreams start(Topology topology, StreamsConfig config) {
        return started(new KafkaStreams(topology, config));
    }

    KafkaStreams started(KafkaStreams streams) {
        instances.add(streams);
        streams.start();
        return streams;
    }

    /** Counts the words of the lines of `<id>-in` into `<id>-out`, where each number of each word comes once. */
    Topology words() {
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(id + "-in")
            .flatMapValues(line -> List.of(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.as("words"))
            .count(Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("counts")).withCachingDisabled())
            .toStream()
            .mapValues(count -> Long.toString(count))
            .to(id + "-out");
        return builder.build();
    }

    /** Creates topics, and returns when the group coordinator knows them. */
    void topics(Object... namesAndPartitions) throws Exception {
        List<NewTopic> topics = new ArrayList<>();
        for (int at = 0; at < namesAndPartitions.length; at += 2)
            topics.add(new NewTopic(id + namesAndPartitions[at], (int) namesAndPartitions[at + 1], (short) 1));
        create(topics);
        known();
    }

    private void create(List<NewTopic> topics) throws Exception {
        admin.createTopics(topics).all().get();
        List<String> names = topics.stream().map(NewTopic::name).toList();
        until("the broker to show " + names, () -> admin.listTopics().names().get().containsAll(names));
    }

    /**
     * Waits until the group coordinator knows what the broker shows. Kafka shows a change, makes the logs of its partitions, and only then tells its
     * coordinators, a second later at times; it does all that before it shows the next change, which is a topic that no application reads.
     */
    private void known() throws Exception {
        create(List.of(new NewTopic(id + "-known-" + changes++, 1, (short) 1)));
    }

    /** Topics of the word count. */
    void wordTopics(int partitions) throws Exception {
        topics("-in", partitions, "-out", 1);
    }

    /** Alters a configuration of the application's group, and returns when the group coordinator knows it. */
    void group(String key, Object value) throws Exception {
        ConfigResource group = new ConfigResource(ConfigResource.Type.GROUP, id);
        admin.incrementalAlterConfigs(Map.of(group, List.of(new AlterConfigOp(new ConfigEntry(key, value.toString()), AlterConfigOp.OpType.SET)))).all().get();
        until("the broker to show " + key, () -> {
            ConfigEntry shown = admin.describeConfigs(List.of(group)).all().get().get(group).get(key);
            return shown != null && shown.value().equals(value.toString()); // Kafka may show none at all before
        });
        known();
    }

    /** Writes lines with all words, each line to the next partition. */
    void lines(int count, int partitions) {
        for (int line = 0; line < count; line++)
            producer.send(new ProducerRecord<>(id + "-in", line % partitions, null, String.join(" ", WORDS)));
        producer.flush();
        for (String word : WORDS) said.merge(word, count, Integer::sum);
    }

    /** Traffic: lines until it is closed. */
    class Traffic implements AutoCloseable {
        volatile boolean ends;
        final Thread thread;

        Traffic(int partitions) {
            thread = new Thread(() -> {
                while (!ends) {
                    lines(partitions, partitions);
                    java.util.concurrent.locks.LockSupport.parkNanos(10_000_000);
                }
            });
            thread.start();
        }

        @Override
        public void close() throws InterruptedException {
            ends = true;
            thread.join();
        }
    }

    /** Reads a topic until it holds this many committed records; values by key, in order. */
    Map<String, List<String>> values(String topic, int count) throws Exception {
        Map<String, Object> config = new HashMap<>(clients(options.get("admin")));
        config.putAll(Map.of("isolation.level", "read_committed", "auto.offset.reset", "earliest"));
        Map<String, List<String>> found = new TreeMap<>();
        int[] seen = {0};
        try (Consumer<String, String> consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
            List<TopicPartition> partitions = consumer.partitionsFor(topic).stream().map(one -> new TopicPartition(topic, one.partition())).toList();
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Condition all = () -> {
                for (ConsumerRecord<String, String> one : consumer.poll(Duration.ofMillis(100))) {
                    found.computeIfAbsent(one.key(), key -> new ArrayList<>()).add(one.value());
                    seen[0]++;
                }
                return seen[0] >= count;
            };
            until(count + " records in " + topic, all, () -> seen[0] + " records");
        }
        return found;
    }

    /** The counts begin again: at the words that come, or also at those that were written since they began. */
    void begins(boolean isReadAgain) {
        before.add(Map.copyOf(said));
        if (!isReadAgain) said.clear();
    }

    /** A line may be in the input twice where a broker was killed before it answered: what counts is what the input holds. */
    void recounts(int partitions) throws Exception {
        Map<TopicPartition, OffsetSpec> ends = new HashMap<>();
        for (int partition = 0; partition < partitions; partition++) ends.put(new TopicPartition(id + "-in", partition), OffsetSpec.latest());
        int lines = (int) sum(ends);
        said.forEach((word, count) -> holds(count <= lines, count + " lines were acknowledged, and there are " + lines));
        said.replaceAll((word, count) -> lines);
    }

    /** Each word was counted once for each line, and no number came twice. */
    void counted() throws Exception {
        Map<String, List<String>> expected = new TreeMap<>();
        List<Map<String, Integer>> all = new ArrayList<>(before);
        all.add(said);
        for (Map<String, Integer> since : all)
            since.forEach((word, count) -> {
                List<String> numbers = expected.computeIfAbsent(word, key -> new ArrayList<>());
                for (int number = 1; number <= count; number++) numbers.add(Integer.toString(number));
            });
        Map<String, List<String>> counts = values(id + "-out", expected.values().stream().mapToInt(List::size).sum());
        for (Map.Entry<String, List<String>> one : expected.entrySet()) equal(counts.get(one.getKey()), one.getValue(), "counts of " + one.getKey());
        equal(counts.keySet(), expected.keySet(), "words");
    }

    // waiting, and what must be

    static void until(String what, Condition condition) throws Exception {
        until(what, condition, () -> "");
    }

    static void until(String what, Condition condition, Callable<Object> last) throws Exception {
        long began = System.nanoTime();
        while (!condition.holds()) {
            if (System.nanoTime() - began > WITHIN_SECONDS * 1_000_000_000L) throw new AssertionError("waited too long for " + what + "; last: " + last.call());
            java.util.concurrent.locks.LockSupport.parkNanos(5_000_000);
        }
    }

    static void equal(Object found, Object expected, String what) {
        if (!Objects.equals(found, expected)) throw new AssertionError(what + ": expected " + expected + ", found " + found);
    }

    static void holds(boolean condition, String what) {
        if (!condition) throw new AssertionError("not so: " + what);
    }

    static int tasks(KafkaStreams streams) {
        return streams.metadataForLocalThreads().stream().mapToInt(thread -> thread.activeTasks().size()).sum();
    }

    static int standbys(KafkaStreams streams) {
        return streams.metadataForLocalThreads().stream().mapToInt(thread -> thread.standbyTasks().size()).sum();
    }

    /** Waits until each of the instances runs, with this many active tasks. */
    static void run(int each, KafkaStreams... streams) throws Exception {
        until(each + " tasks in each of " + streams.length + " instances",
            () -> Arrays.stream(streams).allMatch(one -> one.state() == KafkaStreams.State.RUNNING && tasks(one) == each),
            () -> Arrays.stream(streams).map(one -> one.state() + " " + tasks(one)).toList());
    }

    static void reaches(KafkaStreams streams, KafkaStreams.State state) throws Exception {
        until("state " + state, () -> streams.state() == state, streams::state);
    }

    /** How many partitions the application's topic with this ending has. */
    int partitions(String ending) throws Exception {
        return admin.describeTopics(List.of(id + ending)).allTopicNames().get().get(id + ending).partitions().size();
    }

    /** The sum of offsets. */
    long sum(Map<TopicPartition, OffsetSpec> of) throws Exception {
        return admin.listOffsets(of).all().get().values().stream().mapToLong(ListOffsetsResult.ListOffsetsResultInfo::offset).sum();
    }

    StreamsGroupDescription described() throws Exception {
        return admin.describeStreamsGroups(List.of(id)).all().get().get(id);
    }

    void stable() throws Exception {
        until("stable", () -> described().groupState() == org.apache.kafka.common.GroupState.STABLE, this::described);
    }

    /** Waits until the application has logged a line with this text, and returns the line. */
    String logs(String text) throws Exception {
        String[] found = {null};
        until("the log's line '" + text + "'", () -> (found[0] = logged(text)) != null, () -> StreamsLog.of(id));
        return found[0];
    }

    String logged(String text) {
        return StreamsLog.of(id).stream().filter(line -> line.contains(text)).findFirst().orElse(null);
    }

    String ask(String words) {
        return asks.apply(words);
    }

    @Override
    public void close() {
        for (KafkaStreams one : instances) one.close(Duration.ofSeconds(20));
        producer.close();
        admin.close();
    }
}
