import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.security.kerberos.KerberosName;
import org.apache.kafka.common.security.kerberos.KerberosShortNamer;

/**
 * The users that Kafka finds for Kerberos principals: one JSON object a line in, {"realm": the default realm, "rules":
 * [rules], "name": a principal}, one out, {"is": user} or {"error": words}.
 */
public class Kerberos {
    public static void main(String[] args) throws Exception {
        ObjectMapper json = new ObjectMapper();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode asked = json.readTree(line);
            List<String> rules = new ArrayList<>();
            asked.get("rules").forEach(rule -> rules.add(rule.asText()));
            ObjectNode out = json.createObjectNode();
            try {
                out.put("is", KerberosShortNamer.fromUnparsedRules(asked.get("realm").asText(), rules)
                    .shortName(KerberosName.parse(asked.get("name").asText())));
            } catch (Exception error) {
                out.put("error", String.valueOf(error.getMessage()));
            }
            System.out.println(json.writeValueAsString(out));
        }
    }
}
