import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/** Producers that write records and push their metrics until they are killed: ADDRESS TOPIC CLIENT_ID... */
public class TelemetryErrors {
    public static void main(String[] arguments) throws Exception {
        List<KafkaProducer<String, String>> producers = new ArrayList<>();
        for (int i = 2; i < arguments.length; i++)
            producers.add(new KafkaProducer<>(
                Map.of("bootstrap.servers", arguments[0], "client.id", arguments[i], "enable.metrics.push", true),
                new StringSerializer(), new StringSerializer()));
        while (true) {
            for (KafkaProducer<String, String> producer : producers) producer.send(new ProducerRecord<>(arguments[1], "value"));
            Thread.sleep(20);
        }
    }
}
