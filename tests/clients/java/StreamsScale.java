import java.util.*;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.*;

/**
 * A Kafka Streams application of two threads goes from one instance to two and back, in a classic group, against the broker of which the
 * address is the first argument. It prints how many milliseconds each step took until every task ran.
 */
public class StreamsScale {
    static final int PARTITIONS = 4;

    static KafkaStreams instance(String servers, String application, String state) {
        Properties config = new Properties();
        config.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, servers);
        config.put(StreamsConfig.APPLICATION_ID_CONFIG, application);
        config.put(StreamsConfig.STATE_DIR_CONFIG, state);
        config.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        config.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        config.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(application + "-in").to(application + "-out");
        return new KafkaStreams(builder.build(), config);
    }

    static int tasks(KafkaStreams streams) {
        return streams.metadataForLocalThreads().stream().mapToInt(thread -> thread.activeTasks().size()).sum();
    }

    static boolean runs(KafkaStreams streams, int count) {
        return streams.state() == KafkaStreams.State.RUNNING && tasks(streams) == count;
    }

    static void until(String what, BooleanSupplier condition) throws Exception {
        long began = System.nanoTime();
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() - began > 90_000_000_000L) throw new Exception("waited too long for " + what);
            Thread.sleep(5);
        }
        System.out.println(what + " " + (System.nanoTime() - began) / 1_000_000);
    }

    public static void main(String[] arguments) throws Exception {
        String servers = arguments[0], application = arguments[1], state = arguments[2];
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", servers))) {
            admin.createTopics(List.of(new NewTopic(application + "-in", PARTITIONS, (short) 1), new NewTopic(application + "-out", 1, (short) 1))).all().get();
        }
        KafkaStreams first = instance(servers, application, state + "/1");
        first.start();
        until("one", () -> runs(first, PARTITIONS));
        KafkaStreams second = instance(servers, application, state + "/2");
        second.start();
        until("two", () -> runs(first, PARTITIONS / 2) && runs(second, PARTITIONS / 2));
        second.close(CloseOptions.groupMembershipOperation(CloseOptions.GroupMembershipOperation.LEAVE_GROUP));
        until("back", () -> runs(first, PARTITIONS));
        first.close();
        System.out.println("ok");
        System.exit(0);
    }
}
