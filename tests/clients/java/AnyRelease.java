import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;

/**
 * Writes with every codec that the release has, and reads in a group, with the clients of any release since 0.9;
 * compiled against each. Arguments: bootstrap servers, topic, codecs.
 */
public class AnyRelease {
    static Object poll(KafkaConsumer<String, String> consumer) throws Exception {
        for (Method method : KafkaConsumer.class.getMethods())
            if (method.getName().equals("poll") && method.getParameterTypes()[0] == long.class)
                return method.invoke(consumer, 200L);
        Class<?> duration = Class.forName("java.time.Duration");
        Object time = duration.getMethod("ofMillis", long.class).invoke(null, 200L);
        return KafkaConsumer.class.getMethod("poll", duration).invoke(consumer, time);
    }

    /** `subscribe` and `assign` take a List in 0.9 and a Collection since 0.10. */
    static void subscribe(KafkaConsumer<String, String> consumer, String topic) throws Exception {
        Class<?> type = List.class;
        try {
            KafkaConsumer.class.getMethod("subscribe", type);
        } catch (NoSuchMethodException since) {
            type = Collection.class;
        }
        KafkaConsumer.class.getMethod("subscribe", type).invoke(consumer, Arrays.asList(topic));
    }

    public static void main(String[] arguments) throws Exception {
        String servers = arguments[0], topic = arguments[1];
        List<String> sent = new ArrayList<>();
        for (String codec : arguments[2].split(",")) {
            Properties config = new Properties();
            config.put("bootstrap.servers", servers);
            config.put("acks", "all");
            config.put("linger.ms", "20");
            config.put("compression.type", codec);
            config.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
            config.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
            KafkaProducer<String, String> producer = new KafkaProducer<>(config);
            List<Future<RecordMetadata>> futures = new ArrayList<>();
            for (int i = 0; i < 50; i++) {
                String value = codec + "-" + i;
                sent.add(value);
                futures.add(producer.send(new ProducerRecord<>(topic, 0, "k" + i, value)));
            }
            long offset = -1;
            for (Future<RecordMetadata> future : futures) {
                long found = future.get(20, TimeUnit.SECONDS).offset();
                if (found <= offset) throw new AssertionError(found + " after " + offset);
                offset = found;
            }
            producer.close();
        }
        List<String> read = new ArrayList<>();
        Properties config = new Properties();
        config.put("bootstrap.servers", servers);
        config.put("group.id", "group-" + topic);
        config.put("auto.offset.reset", "earliest");
        config.put("enable.auto.commit", "false");
        config.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        config.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        KafkaConsumer<String, String> consumer = new KafkaConsumer<>(config);
        subscribe(consumer, topic);
        long until = System.currentTimeMillis() + 30000;
        while (read.size() < sent.size() && System.currentTimeMillis() < until)
            for (Object record : (ConsumerRecords<?, ?>) poll(consumer))
                read.add((String) ((ConsumerRecord<?, ?>) record).value());
        if (!read.equals(sent)) throw new AssertionError(read.size() + " of " + sent.size() + ": " + read);
        consumer.commitSync();
        Object committed = consumer.position(new TopicPartition(topic, 0));
        if (!committed.equals((long) sent.size())) throw new AssertionError("position " + committed);
        consumer.close();
        System.out.println(sent.size() + " ok");
    }
}
