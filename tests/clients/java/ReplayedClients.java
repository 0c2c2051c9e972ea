import java.time.Duration;
import java.util.*;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.*;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.Stores;

/**
 * Clients whose requests are recorded and sent to another broker later: a member of a share group (`share`), or an application of Kafka Streams with
 * the protocol of its own and a store (`streams`). Each does its work, says `ok` and leaves.
 */
public class ReplayedClients {
    static final int RECORDS = 30;
    static String servers;

    static Properties config(Object... more) {
        Properties config = new Properties();
        config.put("bootstrap.servers", servers);
        for (int i = 0; i < more.length; i += 2) config.put((String) more[i], more[i + 1]);
        return config;
    }

    static void filled(Admin admin, String topic, int partitions) throws Exception {
        admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1))).all().get();
        try (var producer = new KafkaProducer<String, String>(config(), new StringSerializer(), new StringSerializer())) {
            for (int n = 0; n < RECORDS; n++) producer.send(new ProducerRecord<>(topic, n % partitions, "k" + n % 3, "" + n));
        }
    }

    /** Takes all records; gives the first one back twice, and keeps the second one longer. */
    static void share(Admin admin) throws Exception {
        filled(admin, "java-parcels", 1);
        var group = new ConfigResource(ConfigResource.Type.GROUP, "java-parcels");
        var earliest = new AlterConfigOp(new ConfigEntry("share.auto.offset.reset", "earliest"), AlterConfigOp.OpType.SET);
        admin.incrementalAlterConfigs(Map.of(group, List.of(earliest))).all().get();
        Set<String> taken = new HashSet<>();
        int released = 0, renewed = 0;
        var settings = config("group.id", "java-parcels", "share.acknowledgement.mode", "explicit", "max.poll.records", 8);
        try (var consumer = new KafkaShareConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of("java-parcels"));
            while (taken.size() < RECORDS) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(500))) {
                    if (record.value().equals("0") && released++ < 2) {
                        consumer.acknowledge(record, AcknowledgeType.RELEASE);
                    } else if (record.value().equals("1") && renewed++ < 1) {
                        consumer.acknowledge(record, AcknowledgeType.RENEW);
                    } else {
                        consumer.acknowledge(record, AcknowledgeType.ACCEPT);
                        taken.add(record.value());
                    }
                }
                consumer.commitSync();
            }
        }
    }

    /** Counts the records of each key of a partition, exactly once, with a store that has a changelog. */
    static void streams(Admin admin, String state) throws Exception {
        filled(admin, "java-words", 2);
        admin.createTopics(List.of(new NewTopic("java-counts", 2, (short) 1))).all().get();
        var builder = new StreamsBuilder();
        builder.<String, String>stream("java-words").groupByKey()
            .count(Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("counts")).withCachingDisabled()).toStream().mapValues(Object::toString).to("java-counts");
        var settings = config(
            "application.id", "java-counting", "group.protocol", "streams", "state.dir", state, "num.stream.threads", 1, "commit.interval.ms", 200,
            "default.key.serde", Serdes.StringSerde.class, "default.value.serde", Serdes.StringSerde.class, "processing.guarantee", "exactly_once_v2",
            StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
        int counts = 0;
        var reading = config("group.id", "java-reader", "auto.offset.reset", "earliest", "isolation.level", "read_committed");
        try (var application = new KafkaStreams(builder.build(), settings);
                var reader = new KafkaConsumer<>(reading, new StringDeserializer(), new StringDeserializer())) {
            application.start();
            reader.subscribe(List.of("java-counts"));
            long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
            while (counts < RECORDS) {
                if (System.nanoTime() > end) throw new Exception("counted " + counts);
                counts += reader.poll(Duration.ofMillis(200)).count();
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        servers = arguments[0];
        try (Admin admin = Admin.create(config())) {
            if (arguments[1].equals("share")) share(admin);
            else streams(admin, arguments[2]);
        }
        System.out.println("ok");
        System.exit(0);
    }
}
