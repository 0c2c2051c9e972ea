import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;

/**
 * What one release of Kafka has: the versions of its APIs, its error codes and its features, as one JSON object. Only by
 * reflection, because the classes and methods differ from release to release.
 */
public class Releases {
    static final String PROTOCOL = "org.apache.kafka.common.protocol.";

    static Class<?> named(String name) {
        try {
            return Class.forName(name);
        } catch (ClassNotFoundException absent) {
            return null;
        }
    }

    /** What a method without arguments, or a field, returns; null if there is neither. */
    static Object of(Object from, String name, Object... arguments) throws Exception {
        Class<?> type = from instanceof Class ? (Class<?>) from : from.getClass();
        Object receiver = from instanceof Class ? null : from;
        for (Class<?> one = type; one != null; one = one.getSuperclass()) {
            for (Method method : one.getDeclaredMethods()) {
                if (!method.getName().equals(name) || method.getParameterCount() != arguments.length) continue;
                if (arguments.length == 1 && !method.getParameterTypes()[0].isInstance(arguments[0])
                    && !(method.getParameterTypes()[0] == boolean.class && arguments[0] instanceof Boolean)) continue;
                method.setAccessible(true);
                return method.invoke(receiver, arguments);
            }
            if (arguments.length > 0) continue;
            for (Field field : one.getDeclaredFields()) {
                if (!field.getName().equals(name)) continue;
                field.setAccessible(true);
                return field.get(receiver);
            }
        }
        return null;
    }

    static int length(Object schemas) {
        return schemas == null ? 0 : Array.getLength(schemas);
    }

    /** The lowest and highest version that a broker for clients lists by default; null if it lists none. */
    static int[] versions(Object api, int id, Object listener) throws Exception {
        Class<?> protocol = named(PROTOCOL + "Protocol");
        if (protocol != null && of(protocol, "REQUESTS") != null) { // until 0.11
            Object requests = Array.getLength(of(protocol, "REQUESTS")) > id ? Array.get(of(protocol, "REQUESTS"), id) : null;
            int count = length(requests), low = 0;
            while (low < count && Array.get(requests, low) == null) low++;
            return count == 0 ? null : new int[] {low, count - 1};
        }
        if (Boolean.FALSE.equals(of(api, "isEnabled"))) return null; // of 2.7: what no broker served yet
        if (listener != null) {
            Object scope = of(of(api, "messageType"), "listeners");
            if (scope != null && !((java.util.Set<?>) scope).contains(listener)) return null;
        }
        Object listed = of(api, "toApiVersion", false); // since 3.5, without versions that are not released
        if (listed instanceof java.util.Optional) {
            if (!((java.util.Optional<?>) listed).isPresent()) return null;
            Object found = ((java.util.Optional<?>) listed).get();
            return new int[] {((Number) of(found, "minVersion")).intValue(), ((Number) of(found, "maxVersion")).intValue()};
        }
        return new int[] {((Number) of(api, "oldestVersion")).intValue(), ((Number) of(api, "latestVersion")).intValue()};
    }

    static String apis(String listenerName) throws Exception {
        List<String> out = new ArrayList<>();
        Class<?> listeners = named("org.apache.kafka.common.message.ApiMessageType$ListenerType");
        Object broker = null;
        if (listeners != null)
            for (Object one : listeners.getEnumConstants()) if (one.toString().equals(listenerName)) broker = one;
        for (Object api : named(PROTOCOL + "ApiKeys").getEnumConstants()) {
            int id = ((Number) of(api, "id")).intValue();
            int[] found = versions(api, id, broker);
            if (found != null) out.add("\"" + id + "\": [" + found[0] + ", " + found[1] + "]");
        }
        return "{" + String.join(", ", out) + "}";
    }

    static String errors() throws Exception {
        List<String> out = new ArrayList<>();
        for (Object error : named(PROTOCOL + "Errors").getEnumConstants()) out.add(of(error, "code").toString());
        return "[" + String.join(", ", out) + "]";
    }

    /** The highest released level of each feature. */
    static String features() throws Exception {
        List<String> out = new ArrayList<>();
        Class<?> metadata = named("org.apache.kafka.server.common.MetadataVersion");
        if (metadata != null) {
            Object latest = of(metadata, "latestProduction");
            if (latest == null) latest = of(metadata, "LATEST_PRODUCTION");
            if (latest == null) latest = of(metadata, "latest");
            out.add("\"metadata.version\": " + of(latest, "featureLevel"));
        }
        Class<?> features = named("org.apache.kafka.server.common.Feature");
        if (features == null) features = named("org.apache.kafka.server.common.Features");
        if (features != null && features.isEnum())
            for (Object one : features.getEnumConstants()) {
                Object name = of(one, "featureName"), level = of(one, "latestProduction");
                if (level != null && !name.toString().contains("test.") && ((Number) level).intValue() > 0)
                    out.add("\"" + name + "\": " + level);
            }
        return "{" + String.join(", ", out) + "}";
    }

    public static void main(String[] arguments) throws Exception {
        System.out.println("{\"apis\": " + apis(arguments[0]) + ", \"errors\": " + errors() + ", \"features\": " + features() + "}");
    }
}
