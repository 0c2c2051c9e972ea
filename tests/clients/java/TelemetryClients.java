import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Produces and consumes records of a topic until its standard input ends: ADDRESS TOPIC; the client ids are
 * java-producer and java-consumer. Prints the instance ids of both, and then ok.
 */
public class TelemetryClients {
    public static void main(String[] args) throws Exception {
        Map<String, Object> common = Map.of("bootstrap.servers", args[0], "enable.metrics.push", true);
        var producer = new KafkaProducer<>(with(common, Map.of("client.id", "java-producer")), new StringSerializer(), new StringSerializer());
        var consumer = new KafkaConsumer<>(
            with(common, Map.of("client.id", "java-consumer", "group.id", "java-group", "group.protocol", "consumer", "auto.offset.reset", "earliest")),
            new StringDeserializer(), new StringDeserializer());
        consumer.subscribe(List.of(args[1]));
        producer.send(new ProducerRecord<>(args[1], "first")).get();
        consumer.poll(Duration.ofMillis(100));
        System.out.println(producer.clientInstanceId(Duration.ofSeconds(60)) + " " + consumer.clientInstanceId(Duration.ofSeconds(60)));
        while (System.in.available() == 0) {
            producer.send(new ProducerRecord<>(args[1], "next"));
            consumer.poll(Duration.ofMillis(50));
        }
        producer.close(Duration.ofSeconds(30));
        consumer.close();
        System.out.println("ok");
    }

    private static Map<String, Object> with(Map<String, Object> common, Map<String, Object> own) {
        var all = new java.util.HashMap<>(common);
        all.putAll(own);
        return all;
    }
}
