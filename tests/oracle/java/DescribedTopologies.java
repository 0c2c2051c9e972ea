import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.DescribeStreamsGroupsOptions;
import org.apache.kafka.clients.admin.StreamsGroupDescription;

/**
 * What Java's Admin of Kafka 4.4 says of the descriptions of topologies: of the groups that are named behind the address of the
 * broker, first asked for the descriptions and then not.
 */
public class DescribedTopologies {
    public static void main(String[] arguments) throws Exception {
        List<String> groups = Arrays.asList(arguments).subList(1, arguments.length);
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", arguments[0]))) {
            for (boolean wanted : new boolean[] {true, false}) {
                DescribeStreamsGroupsOptions options = new DescribeStreamsGroupsOptions().includeTopologyDescription(wanted);
                Map<String, StreamsGroupDescription> found = admin.describeStreamsGroups(groups, options).all().get();
                for (String group : groups) {
                    StreamsGroupDescription one = found.get(group);
                    System.out.println(group + " " + one.topologyDescriptionStatus() + " " + one.topologyDescription());
                }
            }
        }
    }
}
