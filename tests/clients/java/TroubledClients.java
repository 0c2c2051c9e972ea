import java.util.*;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.KafkaException;

/**
 * Kafka's own producer, whose third batch the broker at the address of the first argument refuses as out of order, and has not written:
 * an idempotent one goes on with the next record, and a transactional one aborts.
 */
public class TroubledClients {
    static final int RECORDS = 6;

    static KafkaProducer<String, String> producer(String servers, String... more) {
        Map<String, Object> config = new HashMap<>(Map.of("bootstrap.servers", servers));
        for (String side : List.of("key", "value")) config.put(side + ".serializer", "org.apache.kafka.common.serialization.StringSerializer");
        for (int i = 0; i < more.length; i += 2) config.put(more[i], more[i + 1]);
        return new KafkaProducer<>(config);
    }

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

    public static void main(String[] arguments) throws Exception {
        idempotent(arguments[0]);
        transactional(arguments[0]);
        System.out.println("ok");
    }
}
