import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import org.apache.kafka.common.DirectoryId;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.InvalidReplicationFactorException;
import org.apache.kafka.metadata.placement.ClusterDescriber;
import org.apache.kafka.metadata.placement.PartitionAssignment;
import org.apache.kafka.metadata.placement.PlacementSpec;
import org.apache.kafka.metadata.placement.StripedReplicaPlacer;
import org.apache.kafka.metadata.placement.UsableBroker;

/**
 * Where Kafka's controller places new partitions, for comparison. A line is {"brokers": [[id, rack or null, whether it is fenced]],
 * "partitions", "factor", "chance"}: each random number is `chance`, as far as its bound allows. The answer is the replicas of the
 * partitions, as 1,2;2,3, or the message of the error.
 */
public class Placements {
    public static void main(String[] arguments) throws Exception {
        Answers.print(Placements::answer);
    }

    static String answer(JsonNode one) {
        List<UsableBroker> brokers = new ArrayList<>();
        for (JsonNode broker : one.get("brokers")) {
            Optional<String> rack = Optional.ofNullable(broker.get(1).textValue());
            brokers.add(new UsableBroker(broker.get(0).asInt(), rack, broker.get(2).asBoolean()));
        }
        int chance = one.get("chance").asInt();
        Random random = new Random() {
            @Override
            public int nextInt(int bound) {
                return chance % bound;
            }
        };
        ClusterDescriber cluster = new ClusterDescriber() {
            @Override
            public Iterator<UsableBroker> usableBrokers() {
                return brokers.iterator();
            }

            @Override
            public Uuid defaultDir(int broker) {
                return DirectoryId.UNASSIGNED;
            }
        };
        PlacementSpec wanted = new PlacementSpec(0, one.get("partitions").asInt(), (short) one.get("factor").asInt());
        try {
            List<PartitionAssignment> placed = new StripedReplicaPlacer(random).place(wanted, cluster).assignments();
            return String.join(";", placed.stream().map(each -> Elections.text(each.replicas())).toList());
        } catch (InvalidReplicationFactorException error) {
            return error.getMessage();
        }
    }
}
