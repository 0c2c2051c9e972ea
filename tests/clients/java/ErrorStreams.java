import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.UUID;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.DescribeStreamsGroupsOptions;
import org.apache.kafka.clients.admin.StreamsGroupTopologyDescriptionStatus;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.internals.AsyncKafkaConsumer;
import org.apache.kafka.clients.consumer.internals.StreamsRebalanceData;
import org.apache.kafka.clients.consumer.internals.StreamsRebalanceListener;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** The consumer on which Kafka Streams stands, as a member of a streams group. */
public class ErrorStreams {
    static final int HEARTBEATS = 20; // within which the description of the topology is sent, and again if that may help

    /** Gets the partition of the topic, and goes on until the broker has the description of the topology. */
    static void join(Admin admin, Properties settings, String topic, String group) throws Exception {
        settings.putAll(Map.of("group.id", group, "group.protocol", "consumer", "auto.offset.reset", "earliest",
            "key.deserializer", ByteArrayDeserializer.class, "value.deserializer", ByteArrayDeserializer.class));
        StreamsRebalanceData.Subtopology part = new StreamsRebalanceData.Subtopology(Set.of(topic), Set.of(), Map.of(), Map.of(), Set.of());
        StreamsRebalanceData data = new StreamsRebalanceData(
            UUID.randomUUID(), Optional.empty(), Optional.empty(), Map.of("0", part), Map.of(), Map::of, Map::of);
        data.setWireTopologyDescription(DescribingMember.description());
        StreamsRebalanceListener listener = new StreamsRebalanceListener() {
            public void onTasksRevoked(Set<StreamsRebalanceData.TaskId> tasks) { }
            public void onTasksAssigned(StreamsRebalanceData.Assignment assignment) { data.setReconciledAssignment(assignment); }
            public void onAllTasksLost() { }
        };
        try (AsyncKafkaConsumer<byte[], byte[]> consumer = new AsyncKafkaConsumer<>(
                 new ConsumerConfig(settings), new ByteArrayDeserializer(), new ByteArrayDeserializer(), Optional.of(data))) {
            consumer.subscribe(Set.of(topic), listener);
            long until = System.currentTimeMillis() + 60000;
            while (data.reconciledAssignment().activeTasks().isEmpty()) {
                consumer.poll(Duration.ofMillis(20));
                if (System.currentTimeMillis() > until) throw new IllegalStateException("no task within a minute");
            }
            double begun = ErrorCodes.heartbeats(consumer);
            while (!isDescribed(admin, group)) {
                consumer.poll(Duration.ofMillis(20));
                if (ErrorCodes.heartbeats(consumer) > begun + HEARTBEATS) throw new IllegalStateException("no description of the topology");
            }
        }
    }

    static boolean isDescribed(Admin admin, String group) throws Exception {
        DescribeStreamsGroupsOptions options = new DescribeStreamsGroupsOptions().includeTopologyDescription(true);
        return admin.describeStreamsGroups(List.of(group), options).all().get().get(group).topologyDescriptionStatus()
            == StreamsGroupTopologyDescriptionStatus.AVAILABLE;
    }
}
