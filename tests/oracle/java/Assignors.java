import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.SimpleAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupTargetAssignmentMemberValue;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;
import org.apache.kafka.coordinator.group.modern.TopicIds;

/**
 * Kafka's own assignors of consumer groups and share groups, for comparison. A line is {"assignor", "homogeneous", "topics",
 * "members", "assignable"}: a topic is [name, id, number of partitions], a member [id, instance id, names of topics, target], a
 * target a list of [id of a topic, partitions], and so is what may be assigned. The answer is a line with a word for each member:
 * id:topic/partition,partition;topic/partition
 */
public class Assignors {
    record Topics(Map<String, Uuid> ids, Map<Uuid, Integer> counts) implements TopicIds.TopicResolver, SubscribedTopicDescriber {
        @Override public CoordinatorMetadataImage image() { return null; }
        @Override public String name(Uuid id) {
            return ids.entrySet().stream().filter(one -> one.getValue().equals(id)).map(Map.Entry::getKey).findFirst().orElse(null);
        }
        @Override public Uuid id(String name) { return ids.get(name); }
        @Override public void clear() { }
        @Override public int numPartitions(Uuid id) { return counts.getOrDefault(id, -1); }
        @Override public Set<String> racksForPartition(Uuid id, int partition) { return Set.of(); }
    }

    public static void main(String[] arguments) throws Exception {
        Answers.print(Assignors::answer);
    }

    static String answer(JsonNode group) {
        Topics topics = new Topics(new HashMap<>(), new HashMap<>());
        for (JsonNode one : group.get("topics")) {
            topics.ids().put(one.get(0).asText(), id(one.get(1)));
            topics.counts().put(id(one.get(1)), one.get(2).asInt());
        }
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        for (JsonNode one : group.get("members")) {
            List<String> names = new ArrayList<>();
            one.get(2).forEach(name -> names.add(name.asText()));
            Assignment target = target(one.get(3));
            String id = one.get(0).asText();
            members.put(id, new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(), Optional.ofNullable(one.get(1).textValue()), new TopicIds(new HashSet<>(names), topics), target));
            target.partitions().forEach((topic, partitions) -> partitions.forEach(
                partition -> owners.computeIfAbsent(topic, key -> new HashMap<>()).put(partition, id)));
        }
        SubscriptionType type = group.get("homogeneous").asBoolean() ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
        PartitionAssignor assignor = switch (group.get("assignor").asText()) {
            case "range" -> new RangeAssignor();
            case "uniform" -> new UniformAssignor();
            default -> new SimpleAssignor();
        };
        Optional<Map<Uuid, Set<Integer>>> assignable =
            assignor instanceof SimpleAssignor ? Optional.of(target(group.get("assignable")).partitions()) : Optional.empty();
        try {
            return words(assignor.assign(new GroupSpecImpl(members, type, owners, assignable), topics));
        } catch (NoSuchElementException error) {  // a fault of Kafka's: it goes round members that are none any more
            return "fails";
        }
    }

    static Uuid id(JsonNode text) {
        return Uuid.fromString(text.asText());
    }

    static Assignment target(JsonNode listed) {
        ConsumerGroupTargetAssignmentMemberValue value = new ConsumerGroupTargetAssignmentMemberValue();
        for (JsonNode one : listed) {
            List<Integer> partitions = new ArrayList<>();
            one.get(1).forEach(partition -> partitions.add(partition.asInt()));
            value.topicPartitions().add(new ConsumerGroupTargetAssignmentMemberValue.TopicPartition()
                .setTopicId(id(one.get(0))).setPartitions(partitions));
        }
        return Assignment.fromRecord(value);
    }

    static String words(GroupAssignment found) {
        List<String> words = new ArrayList<>();
        for (Map.Entry<String, MemberAssignment> one : new TreeMap<>(found.members()).entrySet()) {
            Map<String, String> topics = new TreeMap<>();
            one.getValue().partitions().forEach((topic, partitions) -> {
                if (!partitions.isEmpty()) {
                    topics.put(topic.toString(), String.join(",", new TreeSet<>(partitions).stream().map(String::valueOf).toList()));
                }
            });
            words.add(one.getKey() + ":" + String.join(";", topics.entrySet().stream().map(e -> e.getKey() + "/" + e.getValue()).toList()));
        }
        return String.join(" ", words);
    }
}
