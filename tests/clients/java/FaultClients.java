import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.KafkaException;

/** Kafka's own clients meet faults: arguments are the address of a broker, produce or consume, a topic, a group, and how many records. */
public class FaultClients {
    public static void main(String[] arguments) throws Exception {
        String topic = arguments[2];
        int count = Integer.parseInt(arguments[4]);
        Properties config = new Properties();
        config.put("bootstrap.servers", arguments[0]);
        config.put("request.timeout.ms", "2000");
        config.put("retry.backoff.ms", "100");
        if (arguments[1].equals("produce")) produce(config, topic, count);
        else consume(config, topic, arguments[3], count);
        System.out.println("ok");
    }

    static void produce(Properties config, String topic, int count) throws Exception {
        config.put("delivery.timeout.ms", "60000");
        config.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        config.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(config)) {
            for (int n = 0; n < count; n++) producer.send(new ProducerRecord<>(topic, "v" + n)).get();
        }
    }

    static void consume(Properties config, String topic, String group, int count) {
        config.put("group.id", group);
        config.put("auto.offset.reset", "earliest");
        config.put("enable.auto.commit", "false");
        config.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        config.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        long until = System.currentTimeMillis() + 60_000;
        int seen = 0;
        while (seen < count && System.currentTimeMillis() < until) { // one that has fetched damaged records keeps them: only another helps
            try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(config)) {
                consumer.subscribe(List.of(topic));
                while (seen < count && System.currentTimeMillis() < until) {
                    for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(500))) {
                        System.out.println("value " + record.value());
                        seen++;
                    }
                }
                consumer.commitSync();
            } catch (RuntimeException error) { // one that has met a reply of nobody knows what throws others than Kafka's too
                System.out.println("error " + error);
            }
        }
    }
}
