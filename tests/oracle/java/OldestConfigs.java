import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import kafka.message.CompressionCodec;
import kafka.utils.VerifiableProperties;
import scala.Tuple2;

/**
 * The configuration keys of Kafka 0.8.2 with their defaults, as one JSON object: what the constructors of its
 * configurations ask for, because its defaults are in their code.
 */
public class OldestConfigs {
    /** Notes each key that is asked for, with its type and the default. */
    static class Asked extends VerifiableProperties {
        final Map<String, String> found = new TreeMap<>();

        Asked(Properties given) {
            super(given);
        }

        void note(String name, String type, Object value) {
            String text = value == null ? "null" : '"' + value.toString() + '"';
            found.putIfAbsent(name, "{\"type\": \"" + type + "\", \"default\": " + text + "}");
        }

        @Override
        public int getInt(String name, int value) {
            note(name, "INT", value);
            return super.getInt(name, value);
        }

        @Override
        public int getIntInRange(String name, int value, Tuple2<Object, Object> range) {
            note(name, "INT", value);
            return super.getIntInRange(name, value, range);
        }

        @Override
        public short getShortInRange(String name, short value, Tuple2<Object, Object> range) {
            note(name, "SHORT", value);
            return super.getShortInRange(name, value, range);
        }

        @Override
        public long getLongInRange(String name, long value, Tuple2<Object, Object> range) {
            note(name, "LONG", value);
            return super.getLongInRange(name, value, range);
        }

        @Override
        public double getDouble(String name, double value) {
            note(name, "DOUBLE", value);
            return super.getDouble(name, value);
        }

        @Override
        public boolean getBoolean(String name, boolean value) {
            note(name, "BOOLEAN", value);
            return super.getBoolean(name, value);
        }

        @Override
        public String getString(String name, String value) {
            note(name, "STRING", value);
            return super.getString(name, value);
        }

        @Override
        public CompressionCodec getCompressionCodec(String name, CompressionCodec value) {
            note(name, "INT", value.codec());
            return super.getCompressionCodec(name, value);
        }

        @Override
        public boolean containsKey(String name) {
            if (!name.equals("broker.id")) note(name, "STRING", null);
            return super.containsKey(name);
        }
    }

    public static void main(String[] arguments) throws Exception {
        Properties given = new Properties();
        given.setProperty("zookeeper.connect", "127.0.0.1:1");
        given.setProperty("broker.id", "0");
        Asked asked = new Asked(given);
        Constructor<?> constructor = Class.forName("kafka.server.KafkaConfig").getDeclaredConstructor(VerifiableProperties.class);
        constructor.setAccessible(true);
        constructor.newInstance(asked);
        List<String> parts = new ArrayList<>();
        asked.found.forEach((name, facts) -> parts.add("  \"" + name + "\": " + facts));
        System.out.println("{\n \"broker\": {\n" + String.join(",\n", parts) + "\n },\n \"topic\": {");
        List<String> topic = new ArrayList<>();
        Map<Object, Object> values = new TreeMap<>(new kafka.log.LogConfig(
            kafka.log.Defaults.SegmentSize(), kafka.log.Defaults.SegmentMs(), kafka.log.Defaults.SegmentJitterMs(),
            kafka.log.Defaults.FlushInterval(), kafka.log.Defaults.FlushMs(), kafka.log.Defaults.RetentionSize(),
            kafka.log.Defaults.RetentionMs(), kafka.log.Defaults.MaxMessageSize(), kafka.log.Defaults.MaxIndexSize(),
            kafka.log.Defaults.IndexInterval(), kafka.log.Defaults.FileDeleteDelayMs(), kafka.log.Defaults.DeleteRetentionMs(),
            kafka.log.Defaults.MinCleanableDirtyRatio(), kafka.log.Defaults.Compact(),
            kafka.log.Defaults.UncleanLeaderElectionEnable(), kafka.log.Defaults.MinInSyncReplicas()).toProps());
        values.forEach((name, value) -> topic.add("  \"" + name + "\": {\"default\": \"" + value + "\"}"));
        System.out.println(String.join(",\n", topic) + "\n },\n \"group\": {},\n \"dynamic\": {}\n}");
    }
}
