import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HexFormat;
import javax.security.auth.x500.X500Principal;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

/**
 * What Java and Kafka make of the subjects of certificates: one JSON object a line in, {"name": DER as hex} or
 * {"rules": mapping rules, "subject": a name}, one out, {"is": name} or {"error": words}.
 */
public class Principals {
    public static void main(String[] args) throws Exception {
        ObjectMapper json = new ObjectMapper();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode asked = json.readTree(line);
            ObjectNode out = json.createObjectNode();
            try {
                out.put("is", asked.has("name")
                    ? new X500Principal(HexFormat.of().parseHex(asked.get("name").asText())).getName()
                    : SslPrincipalMapper.fromRules(asked.get("rules").asText()).getName(asked.get("subject").asText()));
            } catch (Exception error) {
                out.put("error", String.valueOf(error.getMessage()));
            }
            System.out.println(json.writeValueAsString(out));
        }
    }
}
