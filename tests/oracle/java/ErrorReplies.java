import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;

/**
 * What Kafka's classes answer to a request that fails as a whole. A line is {"key", "version", "request", "code", "text"}: a request
 * in hex, an error and its message (null for the error's own). The answer is {"reply"} in hex, or {"none"} with the reason.
 */
public class ErrorReplies {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                String reply = reply(JSON.readTree(line));
                if (reply == null) answer.put("none", "no reply");
                else answer.put("reply", reply);
            } catch (Exception problem) {
                answer.put("none", problem.toString());
            }
            System.out.println(answer);
        }
    }

    static String reply(JsonNode asked) throws Exception {
        ApiKeys key = ApiKeys.forId(asked.get("key").asInt());
        short version = (short) asked.get("version").asInt();
        byte[] data = HexFormat.of().parseHex(asked.get("request").asText());
        AbstractRequest request = AbstractRequest.parseRequest(key, version, new ByteBufferAccessor(ByteBuffer.wrap(data))).request;
        Errors error = Errors.forCode((short) asked.get("code").asInt());
        JsonNode text = asked.get("text");
        Throwable thrown = text.isNull() ? error.exception() : error.exception(text.asText());
        AbstractResponse response = request.getErrorResponse(0, thrown);
        if (response == null) return null;
        Message message = response.data();
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        return HexFormat.of().formatHex(buffer.array());
    }
}
