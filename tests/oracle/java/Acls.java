import com.fasterxml.jackson.databind.JsonNode;
import java.net.InetAddress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;

/**
 * Kafka's StandardAuthorizer, for comparison. A line is {"superUsers", "allowUncovered", "acls", "questions"}; the answer is a line of
 * one character for each question: 1 where it is allowed. An entry is [type, name, pattern, principal, host, operation, permission], a
 * question [principal, host, operation, type, name]; without a name it is whether any resource of the type is allowed.
 */
public class Acls {
    record Caller(KafkaPrincipal principal, InetAddress clientAddress) implements AuthorizableRequestContext {
        @Override public String listenerName() { return "PLAINTEXT"; }
        @Override public SecurityProtocol securityProtocol() { return SecurityProtocol.PLAINTEXT; }
        @Override public int requestType() { return 0; }
        @Override public int requestVersion() { return 0; }
        @Override public String clientId() { return ""; }
        @Override public int correlationId() { return 0; }
    }

    public static void main(String[] arguments) throws Exception {
        Answers.print(Acls::answers);
    }

    static String answers(JsonNode world) throws Exception {
        StandardAuthorizer authorizer = new StandardAuthorizer();
        Map<String, Object> config = new HashMap<>();
        config.put("super.users", world.get("superUsers").asText());
        config.put("allow.everyone.if.no.acl.found", world.get("allowUncovered").asText());
        authorizer.configure(config);
        authorizer.withPluginMetrics(new PluginMetricsImpl(new Metrics(), Map.of()));
        for (JsonNode acl : world.get("acls")) {
            authorizer.addAcl(Uuid.randomUuid(), new StandardAcl(
                ResourceType.fromCode((byte) acl.get(0).asInt()), acl.get(1).asText(), PatternType.fromCode((byte) acl.get(2).asInt()),
                acl.get(3).asText(), acl.get(4).asText(), AclOperation.fromCode((byte) acl.get(5).asInt()),
                AclPermissionType.fromCode((byte) acl.get(6).asInt())));
        }
        authorizer.completeInitialLoad();
        StringBuilder found = new StringBuilder();
        for (JsonNode question : world.get("questions")) {
            String[] principal = question.get(0).asText().split(":", 2);
            Caller caller = new Caller(new KafkaPrincipal(principal[0], principal[1]), InetAddress.getByName(question.get(1).asText()));
            AclOperation operation = AclOperation.fromCode((byte) question.get(2).asInt());
            ResourceType type = ResourceType.fromCode((byte) question.get(3).asInt());
            AuthorizationResult result;
            if (question.get(4).isNull()) {
                result = authorizer.authorizeByResourceType(caller, operation, type);
            } else {
                ResourcePattern resource = new ResourcePattern(type, question.get(4).asText(), PatternType.LITERAL);
                List<Action> actions = new ArrayList<>(List.of(new Action(operation, resource, 1, false, false)));
                result = authorizer.authorize(caller, actions).get(0);
            }
            found.append(result == AuthorizationResult.ALLOWED ? '1' : '0');
        }
        return found.toString();
    }
}
