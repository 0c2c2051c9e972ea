import java.io.FileInputStream;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/** Produces one record to a topic with each configuration: NAME=TOPIC=FILE; prints NAME and what became of it. */
public class TlsClients {
    public static void main(String[] args) throws Exception {
        for (String argument : args) {
            String[] parts = argument.split("=", 3);
            Properties settings = new Properties();
            try (FileInputStream in = new FileInputStream(parts[2])) {
                settings.load(in);
            }
            settings.put("max.block.ms", "4000");
            settings.put("delivery.timeout.ms", "4000");
            settings.put("request.timeout.ms", "3000");
            settings.put("linger.ms", "0");
            String outcome;
            try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
                producer.send(new ProducerRecord<>(parts[1], parts[0])).get();
                outcome = "ok";
            } catch (Exception error) {
                Throwable cause = error;
                while (cause.getCause() != null && cause.getCause().getClass().getName().startsWith("org.apache.kafka")) cause = cause.getCause();
                outcome = cause.getClass().getSimpleName();
            }
            System.out.println(parts[0] + " " + outcome);
        }
    }
}
