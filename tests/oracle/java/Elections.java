import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import org.apache.kafka.common.DirectoryId;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.controller.PartitionChangeBuilder;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * How Kafka's controller changes a partition, for comparison. A line is {"replicas", "isr", "adding", "removing", "elr", "last",
 * "leader", "alive", "min_isr", "elr_on", "target_isr", "election", "lost", "target", "version", "recovery", "target_recovery"}:
 * `target` is null, or the replicas, those that are added and those that are removed; `recovery` is the recovery state of the leader.
 * The answer is the change: isr|leader|elr|last known elr|replicas|adding|removing|recovery state, with - for what does not change,
 * or "none".
 */
public class Elections {
    public static void main(String[] arguments) throws Exception {
        Answers.print(Elections::answer);
    }

    static String answer(JsonNode one) {
        int[] replicas = ints(one.get("replicas"));
        Uuid[] directories = new Uuid[replicas.length];
        for (int i = 0; i < replicas.length; i++) {
            directories[i] = DirectoryId.UNASSIGNED;
        }
        PartitionRegistration partition = new PartitionRegistration.Builder()
            .setReplicas(replicas).setDirectories(directories).setIsr(ints(one.get("isr"))).setAddingReplicas(ints(one.get("adding")))
            .setRemovingReplicas(ints(one.get("removing"))).setElr(ints(one.get("elr"))).setLastKnownElr(ints(one.get("last")))
            .setLeader(one.get("leader").asInt()).setLeaderRecoveryState(LeaderRecoveryState.of((byte) one.get("recovery").asInt()))
            .setLeaderEpoch(0).setPartitionEpoch(0).build();
        List<Integer> alive = list(one.get("alive"));
        PartitionChangeBuilder builder = new PartitionChangeBuilder(partition, new Uuid(0, 1), 0, alive::contains,
            MetadataVersion.fromFeatureLevel((short) one.get("version").asInt()), one.get("min_isr").asInt(), one.get("elr_on").asBoolean());
        builder.setDefaultDirProvider(node -> DirectoryId.UNASSIGNED);
        builder.setTargetIsr(list(one.get("target_isr")));
        builder.setElection(PartitionChangeBuilder.Election.valueOf(one.get("election").asText()));
        builder.setUncleanShutdownReplicas(list(one.get("lost")));
        builder.setTargetLeaderRecoveryState(LeaderRecoveryState.of((byte) one.get("target_recovery").asInt()));
        if (!one.get("target").isNull()) {
            builder.setTargetReplicas(list(one.get("target").get(0)));
            builder.setTargetAdding(list(one.get("target").get(1)));
            builder.setTargetRemoving(list(one.get("target").get(2)));
        }
        Optional<ApiMessageAndVersion> found = builder.build();
        if (found.isEmpty()) {
            return "none";
        }
        PartitionChangeRecord record = (PartitionChangeRecord) found.get().message();
        return String.join("|", text(record.isr()), record.leader() == -2 ? "-" : String.valueOf(record.leader()),
            text(record.eligibleLeaderReplicas()), text(record.lastKnownElr()), text(record.replicas()),
            text(record.addingReplicas()), text(record.removingReplicas()),
            record.leaderRecoveryState() == -1 ? "-" : String.valueOf(record.leaderRecoveryState()));
    }

    static int[] ints(JsonNode listed) {
        return IntStream.range(0, listed.size()).map(at -> listed.get(at).asInt()).toArray();
    }

    static List<Integer> list(JsonNode listed) {
        List<Integer> found = new ArrayList<>();
        listed.forEach(one -> found.add(one.asInt()));
        return found;
    }

    static String text(List<Integer> numbers) {
        return numbers == null ? "-" : String.join(",", numbers.stream().map(String::valueOf).toList());
    }
}
