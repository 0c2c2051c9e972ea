import com.fasterxml.jackson.databind.JsonNode;
import java.net.InetAddress;
import java.util.Optional;
import java.util.function.Supplier;
import org.apache.kafka.common.errors.ThrottlingQuotaExceededException;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.apache.kafka.server.quota.ControllerMutationQuota;
import org.apache.kafka.server.quota.ControllerMutationQuotaManager;
import org.apache.kafka.server.quota.QuotaType;

/**
 * Kafka's quota managers, for comparison. A line is {"samples", "seconds", "mutations", "events"}; the answer is a line with one word for
 * each use. An event is ["limit", user, client id, bound], of which "" is the default, and null stands for no such part and for no limit
 * any more; or ["use", user, client id, value, ms, is strict], whose answer is the throttle time, with "!" after it if it was refused.
 */
public class Quotas {
    static long now = 1_000_000;

    static class Manual implements Time {
        @Override public long milliseconds() { return now; }
        @Override public long nanoseconds() { return now * 1_000_000; }
        @Override public void sleep(long ms) { now += ms; }
        @Override public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) { }
    }

    public static void main(String[] arguments) throws Exception {
        Answers.print(Quotas::answers);
        System.exit(0);
    }

    static String answers(JsonNode world) throws Exception {
        Time time = new Manual();
        Metrics metrics = new Metrics(time);
        ClientQuotaManagerConfig config = new ClientQuotaManagerConfig(world.get("samples").asInt(), world.get("seconds").asInt());
        boolean mutations = world.get("mutations").asBoolean();
        ClientQuotaManager manager = mutations
            ? new ControllerMutationQuotaManager(config, metrics, time, "t", Optional.empty())
            : new ClientQuotaManager(config, metrics, QuotaType.PRODUCE, time, "t");
        StringBuilder found = new StringBuilder();
        for (JsonNode event : world.get("events")) {
            if (event.get(0).asText().equals("limit")) {
                manager.updateQuota(
                    entity(event.get(1), ClientQuotaManager.DEFAULT_USER_ENTITY, ClientQuotaManager.UserEntity::new),
                    entity(event.get(2), ClientQuotaManager.DEFAULT_USER_CLIENT_ID, ClientQuotaManager.ClientIdEntity::new),
                    event.get(3).isNull() ? Optional.empty() : Optional.of(Quota.upperBound(event.get(3).asDouble())));
            } else {
                found.append(' ').append(use(manager, event));
            }
        }
        manager.shutdown();
        metrics.close();
        return found.toString();
    }

    static Optional<ClientQuotaEntity.ConfigEntity> entity(JsonNode name, ClientQuotaEntity.ConfigEntity whole,
            java.util.function.Function<String, ClientQuotaEntity.ConfigEntity> named) {
        if (name.isNull()) return Optional.empty();
        return Optional.of(name.asText().isEmpty() ? whole : named.apply(name.asText()));
    }

    static String use(ClientQuotaManager manager, JsonNode event) throws Exception {
        now = 1_000_000 + event.get(4).asLong();
        Session session = new Session(new KafkaPrincipal("User", event.get(1).asText()), InetAddress.getLoopbackAddress());
        String client = event.get(2).asText();
        if (!(manager instanceof ControllerMutationQuotaManager mutations)) {
            return "" + manager.maybeRecordAndGetThrottleTimeMs(session, client, event.get(3).asDouble(), now);
        }
        ControllerMutationQuota quota = event.get(5).asBoolean()
            ? mutations.newStrictQuotaFor(session, client) : mutations.newPermissiveQuotaFor(session, client);
        try {
            quota.record(event.get(3).asDouble());
            return "" + quota.throttleTime();
        } catch (ThrottlingQuotaExceededException error) {
            return quota.throttleTime() + "!";
        }
    }
}
