import java.time.Duration;
import java.util.*;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.KafkaException;

/**
 * Kafka's own producer, whose third batch the broker at the address of the first argument refuses as out of order, and has not written:
 * an idempotent one goes on with the next record, and a transactional one aborts. And a static member that leads its group goes, and
 * comes again (KIP-814).
 */
public class TroubledClients {
    static final int RECORDS = 6;

    static Map<String, Object> at(String servers, String... more) {
        Map<String, Object> config = new HashMap<>(Map.of("bootstrap.servers", servers));
        for (String side : List.of("key", "value")) {
            config.put(side + ".serializer", "org.apache.kafka.common.serialization.StringSerializer");
            config.put(side + ".deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        }
        for (int i = 0; i < more.length; i += 2) config.put(more[i], more[i + 1]);
        return config;
    }

    static KafkaProducer<String, String> producer(String servers, String... more) { return new KafkaProducer<>(at(servers, more)); }

    static void idempotent(String servers) throws Exception {
        int refused = 0;
        try (KafkaProducer<String, String> producer = producer(servers)) {
            for (int i = 0; i < RECORDS; i++) {
                try {
                    producer.send(new ProducerRecord<>("astray", "k", "v")).get();
                } catch (ExecutionException e) {
                    refused++;
                }
            }
        }
        if (refused > 1) throw new Exception(refused + " records are refused");
    }

    static void transactional(String servers) throws Exception {
        try (KafkaProducer<String, String> producer = producer(servers, "transactional.id", "astray")) {
            producer.initTransactions();
            for (int i = 0; i < RECORDS / 2; i++) {
                producer.beginTransaction();
                try {
                    for (int k = 0; k < 2; k++) producer.send(new ProducerRecord<>("astray-writes", "k", "v")).get();
                    producer.commitTransaction();
                } catch (ExecutionException | KafkaException e) {
                    producer.abortTransaction();
                }
            }
        }
    }

    static void comesAgain(String servers) throws Exception {
        try (KafkaProducer<String, String> producer = producer(servers)) {
            producer.send(new ProducerRecord<>("comes-again", "k", "v")).get();
        }
        for (int i = 0; i < 2; i++) {
            Map<String, Object> config = at(servers, "group.id", "comes-again", "group.protocol", "classic", "group.instance.id", "static");
            try (KafkaConsumer<String, String> member = new KafkaConsumer<>(config)) {
                member.subscribe(List.of("comes-again"));
                while (member.assignment().isEmpty()) member.poll(Duration.ofMillis(100));
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        idempotent(arguments[0]);
        transactional(arguments[0]);
        comesAgain(arguments[0]);
        System.out.println("ok");
    }
}
