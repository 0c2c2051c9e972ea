import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.DescribeStreamsGroupsOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.StreamsGroupDescription;
import org.apache.kafka.clients.admin.StreamsGroupTopologyDescriptionStatus;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.internals.AsyncKafkaConsumer;
import org.apache.kafka.clients.consumer.internals.StreamsRebalanceData;
import org.apache.kafka.clients.consumer.internals.StreamsRebalanceListener;
import org.apache.kafka.common.message.StreamsGroupTopologyDescriptionUpdateRequestData.TopologyDescription;
import org.apache.kafka.common.message.StreamsGroupTopologyDescriptionUpdateRequestData.TopologyDescriptionNode;
import org.apache.kafka.common.message.StreamsGroupTopologyDescriptionUpdateRequestData.TopologyDescriptionSubtopology;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * The consumer of Kafka 4.4 on which Kafka Streams stands: a member of a streams group that sends the description of its topology
 * when a heartbeat asks for it. Polls until the broker has it, and says what the broker shows.
 */
public class DescribingMember {
    static TopologyDescription description() {
        TopologyDescriptionNode source = new TopologyDescriptionNode()
            .setName("source").setNodeType((byte) 1).setSourceTopics(List.of("in")).setSuccessors(List.of("sink"));
        TopologyDescriptionNode sink = new TopologyDescriptionNode().setName("sink").setNodeType((byte) 3).setSinkTopic("out");
        return new TopologyDescription().setSubtopologies(List.of(
            new TopologyDescriptionSubtopology().setSubtopologyId("0").setNodes(List.of(source, sink))));
    }

    static StreamsGroupDescription shown(Admin admin) throws Exception {
        DescribeStreamsGroupsOptions options = new DescribeStreamsGroupsOptions().includeTopologyDescription(true);
        return admin.describeStreamsGroups(List.of("app"), options).all().get().get("app");
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, Object> config = new HashMap<>(Map.of("bootstrap.servers", arguments[0], "group.id", "app", "group.protocol", "consumer"));
        config.put("key.deserializer", ByteArrayDeserializer.class);
        config.put("value.deserializer", ByteArrayDeserializer.class);
        StreamsRebalanceData.Subtopology part = new StreamsRebalanceData.Subtopology(Set.of("in"), Set.of(), Map.of(), Map.of(), Set.of());
        StreamsRebalanceData data = new StreamsRebalanceData(
            UUID.randomUUID(), Optional.empty(), Optional.empty(), Map.of("0", part), Map.of(), Map::of, Map::of);
        data.setWireTopologyDescription(description());
        StreamsRebalanceListener listener = new StreamsRebalanceListener() {
            public void onTasksRevoked(Set<StreamsRebalanceData.TaskId> tasks) { }
            public void onTasksAssigned(StreamsRebalanceData.Assignment assignment) {
                data.setReconciledAssignment(assignment);
            }
            public void onAllTasksLost() { }
        };
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", arguments[0]));
             AsyncKafkaConsumer<byte[], byte[]> consumer = new AsyncKafkaConsumer<>(
                 new ConsumerConfig(config), new ByteArrayDeserializer(), new ByteArrayDeserializer(), Optional.of(data))) {
            admin.createTopics(List.of(new NewTopic("in", 2, (short) 1))).all().get();
            consumer.subscribe(Set.of("in"), listener);
            for (int left = 600; left > 0; left--) {
                consumer.poll(Duration.ofMillis(100));
                if (data.reconciledAssignment().activeTasks().size() < 2) continue; // the group may not exist yet
                StreamsGroupDescription found = shown(admin);
                if (found.topologyDescriptionStatus() == StreamsGroupTopologyDescriptionStatus.AVAILABLE) {
                    System.out.println(found.topologyDescription().get());
                    return;
                }
            }
            throw new IllegalStateException("no description after a minute: " + shown(admin));
        }
    }
}
