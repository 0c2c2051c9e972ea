import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.state.Stores;

/** Programs whose topologies have joins, and internal topics that the broker creates. */
class StreamsTopologies {
    static final Map<String, StreamsPrograms.Program> PROGRAMS = Map.of(
        "joins", StreamsTopologies::joins,
        "foreign-keys", StreamsTopologies::foreignKeys,
        "internal-topics", StreamsTopologies::internalTopics,
        "purge", StreamsTopologies::purge);

    /** A stream with another key joins a table of three partitions and a stream of three: what is repartitioned gets three too. */
    static void joins(StreamsRun run) throws Exception {
        run.topics("-orders", 2, "-users", 3, "-payments", 3, "-out", 1);
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> orders = builder.<String, String>stream(run.id + "-orders").selectKey((key, value) -> value.split(":")[0]);
        KTable<String, String> users = builder.table(run.id + "-users");
        KStream<String, String> payments = builder.stream(run.id + "-payments");
        orders.join(users, (order, user) -> order + "=" + user, Joined.as("named"))
            .join(payments, (order, payment) -> order + "=" + payment, JoinWindows.ofTimeDifferenceWithNoGrace(Duration.ofHours(1)),
                StreamJoined.<String, String, String>as("paid").withName("paid"))
            .to(run.id + "-out");
        for (int user = 0; user < 6; user++) run.producer.send(new ProducerRecord<>(run.id + "-users", "u" + user, "name" + user));
        run.producer.flush();
        KafkaStreams first = run.start(builder.build());
        KafkaStreams second = run.start(builder.build());
        StreamsInstances.shared(5, first, second);
        StreamsRun.equal(run.partitions("-named-repartition"), 3, "partitions of the repartition topic");
        List<String> expected = new ArrayList<>();
        for (int order = 0; order < 30; order++) {
            String user = "u" + order % 6;
            run.producer.send(new ProducerRecord<>(run.id + "-orders", "o" + order, user + ":" + order));
            expected.add(user + ":" + order + "=name" + order % 6 + "=paid" + order % 6);
        }
        for (int user = 0; user < 6; user++) run.producer.send(new ProducerRecord<>(run.id + "-payments", "u" + user, "paid" + user));
        run.producer.flush();
        List<String> found = new ArrayList<>();
        run.values(run.id + "-out", expected.size()).values().forEach(found::addAll);
        Collections.sort(expected);
        Collections.sort(found);
        StreamsRun.equal(found, expected, "joined records");
    }

    /** A table joins another one by a key in its values, through two topics of its own. */
    static void foreignKeys(StreamsRun run) throws Exception {
        run.topics("-orders", 3, "-users", 2, "-out", 1);
        StreamsBuilder builder = new StreamsBuilder();
        KTable<String, String> orders = builder.table(run.id + "-orders"), users = builder.table(run.id + "-users");
        orders.join(users, order -> order, (order, user) -> order + "=" + user, TableJoined.as("by-user"), Materialized.as(Stores.inMemoryKeyValueStore("joined")))
            .toStream().to(run.id + "-out");
        KafkaStreams streams = run.start(builder.build());
        StreamsRun.run(5, streams);
        for (int user = 0; user < 4; user++) run.producer.send(new ProducerRecord<>(run.id + "-users", "u" + user, "name" + user));
        for (int order = 0; order < 8; order++) run.producer.send(new ProducerRecord<>(run.id + "-orders", "o" + order, "u" + order % 4));
        run.producer.flush();
        Map<String, List<String>> found = run.values(run.id + "-out", 8);
        for (int order = 0; order < 8; order++)
            StreamsRun.equal(found.get("o" + order), List.of("u" + order % 4 + "=name" + order % 4), "order " + order);
        StreamsRun.equal(run.partitions("-by-user-subscription-registration-topic"), 2, "subscriptions have the partitions of the other table");
        StreamsRun.equal(run.partitions("-by-user-subscription-response-topic"), 3, "responses have the partitions of the table");
    }

    /** Each kind of internal topic: its partitions, and the configurations that are its own. */
    static void internalTopics(StreamsRun run) throws Exception {
        run.topics("-in", 4, "-table", 4, "-out", 1);
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> in = builder.stream(run.id + "-in");
        in.repartition(Repartitioned.<String, String>as("wide").withNumberOfPartitions(6)).foreach((key, value) -> { });
        in.groupBy((key, value) -> value, Grouped.as("again")).count(Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("counts"))
            .withLoggingEnabled(Map.of("min.compaction.lag.ms", "5000"))).toStream().foreach((key, value) -> { });
        in.groupByKey().windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofMinutes(10), Duration.ofMinutes(1)))
            .count(Materialized.as(Stores.inMemoryWindowStore("windows", Duration.ofHours(1), Duration.ofMinutes(10), false))).toStream().foreach((key, value) -> { });
        builder.<String, String>table(run.id + "-table", Materialized.as(Stores.inMemoryKeyValueStore("source")))
            .toStream().groupByKey().count(Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("unlogged")).withLoggingDisabled());
        KafkaStreams streams = run.start(builder.build(), StreamsConfig.topicPrefix("segment.bytes"), 2_000_000);
        StreamsRun.run(4 + 6 + 4 + 4, streams);
        Map<String, String> expected = new TreeMap<>();
        expected.put("-wide-repartition", "6 cleanup.policy=delete message.timestamp.type=CreateTime retention.ms=-1 segment.bytes=2000000");
        expected.put("-again-repartition", "4 cleanup.policy=delete message.timestamp.type=CreateTime retention.ms=-1 segment.bytes=2000000");
        expected.put("-counts-changelog", "4 cleanup.policy=compact message.timestamp.type=CreateTime min.compaction.lag.ms=5000 segment.bytes=2000000");
        expected.put("-windows-changelog", "4 cleanup.policy=compact,delete message.timestamp.type=CreateTime retention.ms=87060000 segment.bytes=2000000");
        expected.put("-source-changelog", "4 cleanup.policy=compact message.timestamp.type=CreateTime segment.bytes=2000000");
        StreamsRun.equal(internal(run), expected, "internal topics");
    }

    /** The application's internal topics by what follows its id: partitions, and the configurations of the topic itself. */
    static Map<String, String> internal(StreamsRun run) throws Exception {
        Map<String, String> found = new TreeMap<>();
        for (String name : run.admin.listTopics().names().get()) {
            if (!name.startsWith(run.id) || !(name.endsWith("-changelog") || name.endsWith("-repartition"))) continue;
            ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, name);
            Set<String> entries = new TreeSet<>();
            for (ConfigEntry entry : run.admin.describeConfigs(List.of(topic)).all().get().get(topic).entries())
                if (entry.source() == ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG) entries.add(entry.name() + "=" + entry.value());
            String suffix = name.substring(run.id.length());
            found.put(suffix, run.partitions(suffix) + " " + String.join(" ", entries));
        }
        return found;
    }

    /** Records of a repartition topic are deleted once they are consumed. */
    static void purge(StreamsRun run) throws Exception {
        run.wordTopics(2);
        KafkaStreams streams = run.start(run.words(), StreamsConfig.REPARTITION_PURGE_INTERVAL_MS_CONFIG, 100);
        StreamsRun.run(4, streams);
        run.lines(20, 2);
        run.counted();
        Map<TopicPartition, OffsetSpec> ends = new HashMap<>(), starts = new HashMap<>();
        for (int partition = 0; partition < 2; partition++) {
            ends.put(new TopicPartition(run.id + "-words-repartition", partition), OffsetSpec.latest());
            starts.put(new TopicPartition(run.id + "-words-repartition", partition), OffsetSpec.earliest());
        }
        StreamsRun.until("purged", () -> run.sum(starts) == run.sum(ends), () -> run.sum(starts) + " of " + run.sum(ends));
        StreamsRun.holds(run.sum(ends) >= 80, "the repartition topic had each word");
    }
}
