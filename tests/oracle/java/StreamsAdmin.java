import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;

/**
 * Every call of Java's Admin for streams groups, against the broker of which the address is the first argument. The second one is
 * a group with members, the third one without; both read a topic of their name. A line for each answer, which has nothing in it
 * that is another one in another cluster.
 */
public class StreamsAdmin {
    static Admin admin;

    static void say(String what, Callable<Object> call) throws Exception {
        String found;
        try {
            found = String.valueOf(call.call());
        } catch (ExecutionException error) {
            found = error.getCause().getClass().getSimpleName() + ": " + error.getCause().getMessage();
        }
        System.out.println(what + " = " + found);
    }

    static Object sorted(Map<?, ?> found) {
        Map<String, Object> out = new TreeMap<>();
        found.forEach((key, value) -> out.put(key.toString(), value));
        return out;
    }

    static Object listed(ListGroupsOptions options, Collection<String> own) throws Exception {
        List<String> out = new ArrayList<>();
        for (GroupListing one : admin.listGroups(options).all().get()) {
            if (own.contains(one.groupId())) out.add(one.toString());
        }
        out.sort(null);
        return out;
    }

    static Object described(String group, boolean operations) throws Exception {
        StreamsGroupDescription found = admin.describeStreamsGroups(
            List.of(group), new DescribeStreamsGroupsOptions().includeAuthorizedOperations(operations)).all().get().get(group);
        List<String> members = new ArrayList<>();
        for (StreamsGroupMemberDescription one : found.members()) members.add(one.toString());
        members.sort(null);
        Object may = found.authorizedOperations() == null ? null : new java.util.TreeSet<>(found.authorizedOperations());
        return List.of(found.groupId(), found.groupState(), found.groupEpoch(), found.targetAssignmentEpoch(), found.topologyEpoch(),
            found.subtopologies(), members, String.valueOf(may));
    }

    static Object offsets(String group) throws Exception {
        return sorted(admin.listStreamsGroupOffsets(Map.of(group, new ListStreamsGroupOffsetsSpec())).partitionsToOffsetAndMetadata(group).get());
    }

    static Object configured(String group, AlterConfigOp.OpType how, String key, String value) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.GROUP, group);
        admin.incrementalAlterConfigs(Map.of(resource, List.of(new AlterConfigOp(new ConfigEntry(key, value), how)))).all().get();
        return "done";
    }

    static void of(String group) throws Exception {
        for (boolean operations : new boolean[] {false, true}) say("described " + group, () -> described(group, operations));
        say("offsets", () -> offsets(group));
        for (TopicPartition some : List.of(new TopicPartition(group, 0), new TopicPartition(group, 9), new TopicPartition("absent", 0))) {
            say("offset of " + some, () -> sorted(admin.listStreamsGroupOffsets(
                Map.of(group, new ListStreamsGroupOffsetsSpec().topicPartitions(List.of(some)))).partitionsToOffsetAndMetadata(group).get()));
            say("altered " + some, () -> admin.alterStreamsGroupOffsets(group, Map.of(some, new OffsetAndMetadata(3, "why"))).all().get());
            say("offsets", () -> offsets(group));
            say("deleted " + some, () -> admin.deleteStreamsGroupOffsets(group, Set.of(some)).partitionResult(some).get());
            say("offsets", () -> offsets(group));
        }
        say("set", () -> configured(group, AlterConfigOp.OpType.SET, "streams.num.standby.replicas", "1"));
        say("set too many", () -> configured(group, AlterConfigOp.OpType.SET, "streams.num.standby.replicas", "9"));
        say("appended", () -> configured(group, AlterConfigOp.OpType.APPEND, "streams.rack.aware.assignment.tags", "zone"));
        say("deleted", () -> configured(group, AlterConfigOp.OpType.DELETE, "streams.num.standby.replicas", ""));
        say("described as a consumer group", () -> admin.describeConsumerGroups(List.of(group)).all().get());
        say("described as a share group", () -> admin.describeShareGroups(List.of(group)).all().get());
        say("described as a classic group", () -> admin.describeClassicGroups(List.of(group)).all().get());
        say("members removed", () -> admin.removeMembersFromConsumerGroup(group, new RemoveMembersFromConsumerGroupOptions()).all().get());
    }

    public static void main(String[] arguments) throws Exception {
        String active = arguments[1], empty = arguments[2];
        List<String> own = List.of(active, empty);
        try (Admin made = Admin.create(Map.of("bootstrap.servers", arguments[0]))) {
            admin = made;
            say("listed", () -> listed(new ListGroupsOptions(), own));
            say("listed streams", () -> listed(ListGroupsOptions.forStreamsGroups(), own));
            say("listed consumers", () -> listed(ListGroupsOptions.forConsumerGroups(), own));
            for (GroupState state : new java.util.TreeSet<>(GroupState.groupStatesForType(GroupType.STREAMS))) {
                say("listed " + state, () -> listed(new ListGroupsOptions().inGroupStates(Set.of(state)), own));
            }
            of(active);
            of(empty);
            of("absent-" + active);
            say("deleted", () -> admin.deleteStreamsGroups(List.of(active)).all().get());
            say("deleted", () -> admin.deleteStreamsGroups(List.of(empty)).all().get());
            say("deleted again", () -> admin.deleteStreamsGroups(List.of(empty)).all().get());
            say("listed", () -> listed(ListGroupsOptions.forStreamsGroups(), own));
        }
        System.out.println("ok");
    }
}
