import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.server.common.Feature;
import org.apache.kafka.server.common.MetadataVersion;

/** Facts of Kafka that are not schemas: error codes, configuration keys, features. Printed as one JSON object. */
public class Facts {
    static final ObjectMapper JSON = new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT);

    /** The keys of a definition, by name. */
    static ObjectNode config(ConfigDef definition) {
        return config(definition.configKeys());
    }

    static ObjectNode config(Map<String, ConfigDef.ConfigKey> keys) {
        ObjectNode out = JSON.createObjectNode();
        for (ConfigDef.ConfigKey key : keys.values()) {
            ObjectNode entry = out.putObject(key.name);
            entry.put("type", key.type.name());
            if (key.hasDefault()) {
                String value = ConfigDef.convertToString(key.defaultValue, key.type);
                if (value == null) entry.putNull("default"); else entry.put("default", value);
            }
            if (key.validator != null) entry.put("valid", key.validator.toString());
            if (key.validator instanceof ConfigDef.ValidList && !takes(key, java.util.List.of())) entry.put("empty", false);
            entry.put("importance", key.importance.name());
            if (key.internalConfig) entry.put("internal", true);
        }
        return out;
    }

    static boolean takes(ConfigDef.ConfigKey key, Object value) {
        try {
            key.validator.ensureValid(key.name, value);
            return true;
        } catch (org.apache.kafka.common.config.ConfigException refused) {
            return false;
        }
    }

    public static void main(String[] args) throws Exception {
        ObjectNode out = JSON.createObjectNode();
        ObjectNode errors = out.putObject("errors");
        for (Errors error : Errors.values()) {
            ObjectNode entry = errors.putObject(Short.toString(error.code()));
            entry.put("name", error.name());
            if (error.message() == null) entry.putNull("message"); else entry.put("message", error.message());
            entry.put("retriable", error.exception() instanceof org.apache.kafka.common.errors.RetriableException);
        }
        ObjectNode features = out.putObject("features");
        for (Feature feature : Feature.FEATURES) {
            ObjectNode entry = features.putObject(feature.featureName());
            entry.put("minimum", feature.minimumProduction());
            entry.put("latest", feature.latestProduction());
            entry.put("default", feature.defaultLevel(MetadataVersion.LATEST_PRODUCTION));
        }
        ObjectNode metadata = out.putObject("metadata_version");
        metadata.put("minimum", MetadataVersion.MINIMUM_VERSION.featureLevel());
        metadata.put("latest", MetadataVersion.LATEST_PRODUCTION.featureLevel());
        metadata.put("name", MetadataVersion.LATEST_PRODUCTION.version());
        ArrayNode changing = metadata.putArray("changing"); // the levels that are not only names
        for (MetadataVersion version : MetadataVersion.values()) {
            if (version.didMetadataChange()) changing.add(version.featureLevel());
        }
        out.set("topic_configs", config(org.apache.kafka.storage.internals.log.LogConfig.configDefCopy()));
        ObjectNode synonyms = out.putObject("topic_config_synonyms");
        for (Map.Entry<String, java.util.List<org.apache.kafka.server.config.ConfigSynonym>> e :
                new TreeMap<>(org.apache.kafka.server.config.ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS).entrySet()) {
            ArrayNode list = synonyms.putArray(e.getKey());
            e.getValue().forEach(s -> list.add(s.name()));
        }
        // in the order in which values are parsed, so that of several wrong ones the first is named
        out.set("group_configs", config(org.apache.kafka.coordinator.group.GroupConfig.CONFIG_DEF.configKeys()));
        out.set("broker_configs", config(org.apache.kafka.server.config.AbstractKafkaConfig.CONFIG_DEF));
        ArrayNode dynamic = out.putArray("dynamic_broker_configs");
        new java.util.TreeSet<>(org.apache.kafka.server.config.DynamicBrokerConfig.ALL_DYNAMIC_CONFIGS).forEach(dynamic::add);
        System.out.println(JSON.writeValueAsString(out));
    }
}
