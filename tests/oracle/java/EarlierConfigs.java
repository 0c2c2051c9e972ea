import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * The configuration keys of one release of Kafka with their defaults, as one JSON object. Only by reflection, because the
 * classes and fields differ from release to release. 0.8.2 has no definitions: see `OldestConfigs`.
 */
public class EarlierConfigs {
    static final String[] BROKER = {"kafka.server.KafkaConfig$", "org.apache.kafka.server.config.AbstractKafkaConfig"};
    static final String[] TOPIC = {"kafka.log.LogConfig$", "org.apache.kafka.storage.internals.log.LogConfig"};
    static final String[] GROUP = {"org.apache.kafka.coordinator.group.GroupConfig"};
    static final String[] DYNAMIC = {"kafka.server.DynamicBrokerConfig$", "org.apache.kafka.server.config.DynamicBrokerConfig"};

    static Class<?> named(String name) {
        try {
            return Class.forName(name);
        } catch (ClassNotFoundException | NoClassDefFoundError absent) {
            return null;
        }
    }

    /** The value of a field of a class or of its superclasses; null if there is none. */
    static Object field(Object from, Class<?> type, String name) throws Exception {
        for (Class<?> one = type; one != null; one = one.getSuperclass()) {
            for (Field field : one.getDeclaredFields()) {
                if (!field.getName().equals(name)) continue;
                field.setAccessible(true);
                return field.get(from);
            }
        }
        return null;
    }

    /** The one object of a Scala object; null where the class is one of Java. */
    static Object module(Class<?> type) throws Exception {
        return field(null, type, "MODULE$");
    }

    /** The keys of the definition with a key that a class, or its Scala object, has in a field; null if it has none. */
    static Map<?, ?> definition(Class<?> type, String with) throws Exception {
        Class<?> wanted = named("org.apache.kafka.common.config.ConfigDef");
        if (wanted == null) return null;
        Object module = module(type);
        for (Field field : type.getDeclaredFields()) {
            if (!wanted.isAssignableFrom(field.getType())) continue;
            field.setAccessible(true);
            Object found = field.get(Modifier.isStatic(field.getModifiers()) ? null : module);
            Map<?, ?> keys = found == null ? null : (Map<?, ?>) field(found, found.getClass(), "configKeys");
            if (keys != null && keys.containsKey(with)) return keys;
        }
        return null;
    }

    static String quoted(String text) {
        if (text == null) return "null";
        return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n") + '"';
    }

    static String text(Object value) {
        if (value == null) return null;
        if (value instanceof java.util.List) {
            List<String> parts = new ArrayList<>();
            for (Object one : (List<?>) value) parts.add(String.valueOf(one));
            return String.join(",", parts);
        }
        if (value instanceof Class) return ((Class<?>) value).getName();
        return String.valueOf(value);
    }

    static void describe(Map<String, String> found, Object key) throws Exception {
        Class<?> type = key.getClass();
        String name = (String) field(key, type, "name");
        Object kind = field(key, type, "type"), value = field(key, type, "defaultValue");
        StringBuilder out = new StringBuilder("{\"type\": " + quoted(String.valueOf(kind)));
        Object none = field(null, named("org.apache.kafka.common.config.ConfigDef"), "NO_DEFAULT_VALUE");
        if (value != none) out.append(", \"default\": " + quoted(text(value)));
        Object valid = field(key, type, "validator");
        if (valid != null) {
            String said = valid.toString();
            if (!said.contains("@") && !said.contains("Lambda")) out.append(", \"valid\": " + quoted(said));
        }
        if (Boolean.TRUE.equals(field(key, type, "internalConfig"))) out.append(", \"internal\": true");
        found.put(name, out + "}");
    }

    /** The keys of the first of the classes that defines one of the name `with`. */
    static Map<String, String> keys(String with, String... classes) throws Exception {
        Map<String, String> found = new TreeMap<>();
        for (String name : classes) {
            Class<?> type = named(name);
            Map<?, ?> keys = type == null ? null : definition(type, with);
            if (keys == null) continue;
            for (Object key : keys.values()) describe(found, key);
            break;
        }
        return found;
    }

    static void print(StringBuilder out, String name, Map<String, String> found) {
        if (out.length() > 1) out.append(",\n");
        List<String> parts = new ArrayList<>();
        for (Map.Entry<String, String> one : found.entrySet()) parts.add("  " + quoted(one.getKey()) + ": " + one.getValue());
        out.append(" " + quoted(name) + ": {\n" + String.join(",\n", parts) + "\n }");
    }

    /** The elements of a set of Java or of Scala. */
    static List<String> elements(Object set) throws Exception {
        List<String> found = new ArrayList<>();
        if (set instanceof java.util.Set) {
            for (Object one : (java.util.Set<?>) set) found.add((String) one);
            return found;
        }
        Class<?> type = Class.forName("scala.collection.Iterator");
        Method hasNext = type.getMethod("hasNext"), next = type.getMethod("next");
        Object iterator = Class.forName("scala.collection.Iterable").getMethod("iterator").invoke(set);
        while ((Boolean) hasNext.invoke(iterator)) found.add((String) next.invoke(iterator));
        return found;
    }

    /** The keys that can be changed while a broker runs. */
    static Map<String, String> dynamic() throws Exception {
        Map<String, String> found = new TreeMap<>();
        for (String name : DYNAMIC) {
            Class<?> type = named(name);
            for (String field : new String[] {"AllDynamicConfigs", "ALL_DYNAMIC_CONFIGS"}) {
                Object set = type == null ? null : field(module(type), type, field);
                if (set != null) for (String one : elements(set)) found.put(one, "{}");
            }
        }
        return found;
    }

    public static void main(String[] arguments) throws Exception {
        StringBuilder out = new StringBuilder("{");
        print(out, "broker", keys("num.partitions", BROKER));
        print(out, "topic", keys("cleanup.policy", TOPIC));
        print(out, "group", keys("consumer.session.timeout.ms", GROUP));
        print(out, "dynamic", dynamic());
        System.out.println(out + "\n}");
    }
}
