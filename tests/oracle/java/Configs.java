import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import kafka.server.ControllerConfigurationValidator;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.config.ConfigResource;

/**
 * What Kafka says of configurations: one JSON object a line in, {"kind": broker|topic|group, "settings": {..}, "own": {..}},
 * one out, {"error": words or null}. A broker's configuration is what a process starts with; a topic's and a group's
 * ("own") are what a controller with the broker's settings checks before it keeps them.
 */
public class Configs {
    static final ObjectMapper JSON = new ObjectMapper();

    static Map<String, String> strings(JsonNode node) {
        Map<String, String> found = new HashMap<>();
        if (node != null) node.fields().forEachRemaining(entry -> found.put(entry.getKey(), entry.getValue().asText()));
        return found;
    }

    static void check(JsonNode asked) {
        Properties settings = new Properties();
        settings.putAll(Map.of(
            "process.roles", "broker,controller",
            "node.id", "1",
            "controller.quorum.bootstrap.servers", "127.0.0.1:9093",
            "listeners", "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
            "controller.listener.names", "CONTROLLER",
            "log.dirs", "data"));
        settings.putAll(strings(asked.get("settings")));
        KafkaConfig config = KafkaConfig.fromProps(settings);
        String kind = asked.get("kind").asText();
        if (kind.equals("broker")) {
            config.groupCoordinatorConfig().consumerGroupAssignors();
            config.groupCoordinatorConfig().shareGroupAssignors();
            config.groupCoordinatorConfig().streamsGroupAssignors();
            config.dynamicConfig().initialize(scala.Option.empty());
            return;
        }
        ConfigResource.Type type = ConfigResource.Type.valueOf(kind.toUpperCase());
        new ControllerConfigurationValidator(config).validate(new ConfigResource(type, "named"), strings(asked.get("own")), new HashMap<>());
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode out = JSON.createObjectNode();
            try {
                check(JSON.readTree(line));
                out.putNull("error");
            } catch (Throwable error) {
                out.put("error", error.getMessage() == null ? error.toString() : error.getMessage());
            }
            System.out.println(JSON.writeValueAsString(out));
        }
    }
}
