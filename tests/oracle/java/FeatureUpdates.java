import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.FeatureUpdate.UpgradeType;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.controller.FeatureControlManager;
import org.apache.kafka.controller.QuorumFeatures;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.KRaftVersion;

/**
 * How Kafka's controller updates features, for comparison. A line is {"present": {feature: level}, "updates": [[feature, level, type]]}.
 * The answer is the message of the error, or feature=level of each that changes, in the order of their names.
 */
public class FeatureUpdates {
    public static void main(String[] arguments) throws Exception {
        Answers.print(FeatureUpdates::answer);
    }

    static String answer(JsonNode one) throws Exception {
        FeatureControlManager manager = manager();
        Map<String, Short> present = new HashMap<>(Map.of("kraft.version", (short) 1));
        one.get("present").properties().forEach(each -> {
            short level = (short) each.getValue().asInt();
            present.put(each.getKey(), level);
            manager.replay(new FeatureLevelRecord().setName(each.getKey()).setFeatureLevel(level));
        });
        Map<String, Short> levels = new HashMap<>();
        Map<String, UpgradeType> types = new HashMap<>();
        for (JsonNode update : one.get("updates")) {
            levels.put(update.get(0).asText(), (short) update.get(1).asInt());
            types.put(update.get(0).asText(), UpgradeType.fromCode(update.get(2).asInt()));
        }
        Object done = call(FeatureControlManager.class, manager, "updateFeatures",
            new Class<?>[] {Map.class, Map.class, boolean.class, int.class}, levels, types, false, 0);
        Class<?> result = Class.forName("org.apache.kafka.controller.ControllerResult");
        ApiError error = (ApiError) call(result, done, "response", new Class<?>[0]);
        if (error.isFailure()) {
            return error.message();
        }
        List<String> changed = new ArrayList<>();
        for (Object record : (List<?>) call(result, done, "records", new Class<?>[0])) {
            if (((ApiMessageAndVersion) record).message() instanceof FeatureLevelRecord level
                    && present.getOrDefault(level.name(), (short) 0) != level.featureLevel()) {
                changed.add(level.name() + "=" + level.featureLevel());
            }
        }
        return String.join(";", changed.stream().sorted().toList());
    }

    static FeatureControlManager manager() throws Exception {
        FeatureControlManager.Builder builder = new FeatureControlManager.Builder();
        call(FeatureControlManager.Builder.class, builder, "setQuorumFeatures", new Class<?>[] {QuorumFeatures.class},
            new QuorumFeatures(1, QuorumFeatures.defaultSupportedFeatureMap(false), List.of()));
        Class<?> accessor = Class.forName("org.apache.kafka.controller.KRaftVersionAccessor");
        call(FeatureControlManager.Builder.class, builder, "setKRaftVersionAccessor", new Class<?>[] {accessor}, Proxy.newProxyInstance(accessor.getClassLoader(), new Class<?>[] {accessor},
            (proxy, asked, values) -> asked.getName().equals("kraftVersion") ? KRaftVersion.KRAFT_VERSION_1 : null));
        return builder.build();
    }

    static Object call(Class<?> of, Object on, String name, Class<?>[] types, Object... values) throws Exception {
        Method method = of.getDeclaredMethod(name, types);
        method.setAccessible(true);
        return method.invoke(on, values);
    }
}
