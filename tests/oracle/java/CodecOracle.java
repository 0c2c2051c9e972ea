import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.Readable;

/**
 * Kafka's own message classes, for comparison. A line is `bytes CLASS VERSION HEX` (read and written again) or
 * `json CLASS VERSION JSON` (read by the JSON converter and written); the answer is hex, or `! reason`.
 */
public class CodecOracle {
    static final ObjectMapper JSON = new ObjectMapper();
    static final Map<String, Constructor<?>> CONSTRUCTORS = new HashMap<>();
    static final Map<String, Method> CONVERTERS = new HashMap<>();

    static Message parse(String name, short version, byte[] data) throws Exception {
        Constructor<?> make = CONSTRUCTORS.get(name);
        if (make == null) {
            make = Class.forName(name).getConstructor(Readable.class, short.class);
            CONSTRUCTORS.put(name, make);
        }
        ByteBuffer buffer = ByteBuffer.wrap(data);
        Message message = (Message) make.newInstance(new ByteBufferAccessor(buffer), version);
        if (buffer.hasRemaining()) throw new IllegalStateException(buffer.remaining() + " bytes left");
        return message;
    }

    static Message fromJson(String name, short version, String text) throws Exception {
        Method read = CONVERTERS.get(name);
        if (read == null) {
            read = Class.forName(name + "JsonConverter").getMethod("read", JsonNode.class, short.class);
            CONVERTERS.put(name, read);
        }
        return (Message) read.invoke(null, JSON.readTree(text), version);
    }

    static String write(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        int size = message.size(cache, version);
        ByteBuffer buffer = ByteBuffer.allocate(size);
        message.write(new ByteBufferAccessor(buffer), cache, version);
        if (buffer.hasRemaining()) throw new IllegalStateException("size() was wrong");
        return HexFormat.of().formatHex(buffer.array());
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"), 1 << 20);
        PrintStream out = new PrintStream(new java.io.BufferedOutputStream(System.out, 1 << 20), false, "UTF-8");
        for (String line; (line = in.readLine()) != null; ) {
            if (line.isEmpty()) { // the end of questions whose answers are waited for
                out.flush();
                continue;
            }
            String[] parts = line.split(" ", 4);
            short version = Short.parseShort(parts[2]);
            String rest = parts.length > 3 ? parts[3] : "";
            try {
                Message message = parts[0].equals("json")
                    ? fromJson(parts[1], version, rest)
                    : parse(parts[1], version, HexFormat.of().parseHex(rest));
                out.println(write(message, version));
            } catch (Throwable error) {
                Throwable cause = error.getCause() == null ? error : error.getCause();
                out.println("! " + String.valueOf(cause).replace('\n', ' '));
            }
        }
        out.flush();
    }
}
