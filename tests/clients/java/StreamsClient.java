import java.util.*;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.state.Stores;

/**
 * Kafka Streams with exactly_once_v2, against the broker of which the address is the first argument: each record of the second argument's topic
 * is written, with how many of its key there were, to the third's. It runs until its input ends, or until it is killed.
 */
public class StreamsClient {
    public static void main(String[] arguments) throws Exception {
        Properties config = new Properties();
        config.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        config.put(StreamsConfig.APPLICATION_ID_CONFIG, arguments[1] + "-app");
        config.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        config.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        config.put(StreamsConfig.STATE_DIR_CONFIG, arguments[3]);
        config.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
        config.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        config.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        config.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        config.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
        config.put(StreamsConfig.consumerPrefix("session.timeout.ms"), 6000);
        config.put(StreamsConfig.producerPrefix("transaction.timeout.ms"), 5000);
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(arguments[1])
            .groupByKey()
            .aggregate(() -> "", (key, value, sum) -> value + "/" + (sum.isEmpty() ? 1 : Integer.parseInt(sum.substring(sum.indexOf('/') + 1)) + 1),
                Materialized.<String, String>as(Stores.inMemoryKeyValueStore("counts")).withCachingDisabled())
            .toStream()
            .to(arguments[2]);
        KafkaStreams streams = new KafkaStreams(builder.build(), config);
        streams.start();
        System.out.println("started");
        System.in.read();
        streams.close();
        System.exit(0);
    }
}
