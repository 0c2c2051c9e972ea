import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.coordinator.group.api.streams.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.streams.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.streams.assignor.TopologyDescriber;
import org.apache.kafka.coordinator.group.streams.assignor.AssignmentConfigsImpl;
import org.apache.kafka.coordinator.group.streams.assignor.GroupSpecImpl;
import org.apache.kafka.coordinator.group.streams.assignor.MemberMetadataAndStateImpl;
import org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor;

/**
 * Kafka's own assignor of streams groups, for comparison. A line is {"members", "subtopologies", "standbys"}: a member is
 * [id, process, active tasks, standby tasks, offsets], a task [subtopology, number], an offset [subtopology, number, offset], a
 * subtopology [id, number of tasks, is stateful]. The answer is a line with a word for each member: id:active tasks|standby tasks.
 */
public class StickyTasks {
    record Subtopology(int tasks, boolean isStateful) { }

    record Topology(Map<String, Subtopology> of) implements TopologyDescriber {
        @Override public List<String> subtopologies() { return new ArrayList<>(of.keySet()); }
        @Override public int maxNumInputPartitions(String id) { return of.get(id).tasks(); }
        @Override public boolean isStateful(String id) { return of.get(id).isStateful(); }
    }

    public static void main(String[] arguments) throws Exception {
        Answers.print(StickyTasks::answer);
    }

    static String answer(JsonNode group) {
        Map<String, MemberMetadataAndStateImpl> members = new HashMap<>();
        for (JsonNode one : group.get("members")) {
            members.put(one.get(0).asText(), new MemberMetadataAndStateImpl(
                Optional.empty(), Optional.empty(), one.get(1).asText(), Map.of(), tasks(one.get(2)), tasks(one.get(3)), Map.of(),
                offsets(one.get(4)), Map.of()));
        }
        Map<String, Subtopology> topology = new TreeMap<>();
        for (JsonNode one : group.get("subtopologies")) {
            topology.put(one.get(0).asText(), new Subtopology(one.get(1).asInt(), one.get(2).asBoolean()));
        }
        AssignmentConfigsImpl configs = new AssignmentConfigsImpl(group.get("standbys").asInt(), List.of());
        GroupAssignment found = new StickyTaskAssignor().assign(new GroupSpecImpl(members, configs), new Topology(topology));
        StringBuilder words = new StringBuilder();
        for (Map.Entry<String, MemberAssignment> one : new TreeMap<>(found.members()).entrySet()) {
            words.append(one.getKey()).append(':').append(text(one.getValue().activeTasks()));
            words.append('|').append(text(one.getValue().standbyTasks())).append(' ');
        }
        return words.toString().trim();
    }

    static Map<String, Set<Integer>> tasks(JsonNode listed) {
        Map<String, Set<Integer>> found = new HashMap<>();
        for (JsonNode one : listed) {
            found.computeIfAbsent(one.get(0).asText(), name -> new HashSet<>()).add(one.get(1).asInt());
        }
        return found;
    }

    static Map<String, Map<Integer, Long>> offsets(JsonNode listed) {
        Map<String, Map<Integer, Long>> found = new HashMap<>();
        for (JsonNode one : listed) {
            found.computeIfAbsent(one.get(0).asText(), name -> new LinkedHashMap<>()).put(one.get(1).asInt(), one.get(2).asLong());
        }
        return found;
    }

    static String text(Map<String, Set<Integer>> tasks) {
        List<String> words = new ArrayList<>();
        new TreeMap<>(tasks).forEach((name, numbers) -> new TreeSet<>(numbers).forEach(number -> words.add(name + "_" + number)));
        return String.join(",", words);
    }
}
