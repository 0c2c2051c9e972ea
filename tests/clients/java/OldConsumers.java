import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import kafka.consumer.Consumer;
import kafka.consumer.ConsumerConfig;
import kafka.consumer.KafkaStream;
import kafka.consumer.Whitelist;
import kafka.javaapi.consumer.ConsumerConnector;
import kafka.javaapi.producer.Producer;
import kafka.message.MessageAndMetadata;
import kafka.producer.KeyedMessage;
import kafka.producer.ProducerConfig;

/**
 * Kafka 0.8.2.2's own high-level consumers, as many as are asked for, and its producer. A line is "join NAME ZOOKEEPER GROUP REGEX STREAMS
 * [KEY=VALUE...]", "leave NAME" or "keyed BROKER TOPIC KEY...". A message is printed as "read NAME TOPIC PARTITION OFFSET VALUE".
 */
public class OldConsumers {
    static final Map<String, ConsumerConnector> connectors = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        say("ready");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "join" -> join(words);
                case "leave" -> {
                    connectors.remove(words[1]).shutdown();
                    say("left " + words[1]);
                }
                case "keyed" -> keyed(words);
                default -> throw new IllegalArgumentException(line);
            }
        }
        System.exit(0);
    }

    static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    static void join(String[] words) {
        String name = words[1];
        Properties p = new Properties();
        p.put("zookeeper.connect", words[2]);
        p.put("group.id", words[3]);
        p.put("consumer.id", name);
        p.put("auto.offset.reset", "smallest");
        p.put("auto.commit.interval.ms", "500");
        p.put("fetch.wait.max.ms", "50");
        p.put("rebalance.backoff.ms", "300");
        p.put("rebalance.max.retries", "50");
        p.put("zookeeper.session.timeout.ms", "3000");
        for (int i = 6; i < words.length; i++) {
            p.put(words[i].split("=")[0], words[i].split("=")[1]);
        }
        ConsumerConnector connector = Consumer.createJavaConsumerConnector(new ConsumerConfig(p));
        connectors.put(name, connector);
        List<KafkaStream<byte[], byte[]>> streams = connector.createMessageStreamsByFilter(new Whitelist(words[4]), Integer.parseInt(words[5]));
        say("joined " + name);
        for (KafkaStream<byte[], byte[]> stream : streams) {
            Thread thread = new Thread(() -> {
                for (MessageAndMetadata<byte[], byte[]> m : stream) {
                    say("read " + name + " " + m.topic() + " " + m.partition() + " " + m.offset() + " " + new String(m.message()));
                }
            });
            thread.setDaemon(true);
            thread.start();
        }
    }

    static void keyed(String[] words) {
        Properties p = new Properties();
        p.put("metadata.broker.list", words[1]);
        p.put("serializer.class", "kafka.serializer.StringEncoder");
        p.put("request.required.acks", "1");
        p.put("message.send.max.retries", "20");
        Producer<String, String> producer = new Producer<>(new ProducerConfig(p));
        for (int i = 3; i < words.length; i++) {
            producer.send(new KeyedMessage<>(words[2], words[i], words[i]));
        }
        producer.close();
        say("sent " + words[2]);
    }
}
