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
 * Kafka 0.8.2.2's own high-level consumers, as many as are asked for, and its producer. The arguments are the addresses of a ZooKeeper and
 * of a broker; a line is "join NAME GROUP REGEX STREAMS", "leave NAME" or "keyed TOPIC KEY...". A message is printed as "read NAME TOPIC
 * PARTITION OFFSET VALUE".
 */
public class OldConsumers {
    static final Map<String, ConsumerConnector> connectors = new HashMap<>();
    static String zookeeper, broker;

    public static void main(String[] arguments) throws Exception {
        zookeeper = arguments[0];
        broker = arguments[1];
        say("ready");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "join" -> join(words[1], words[2], words[3], Integer.parseInt(words[4]));
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

    static void join(String name, String group, String regex, int count) {
        Properties p = new Properties();
        p.put("zookeeper.connect", zookeeper);
        p.put("group.id", group);
        p.put("consumer.id", name);
        p.put("auto.offset.reset", "smallest");
        p.put("auto.commit.interval.ms", "500");
        p.put("fetch.wait.max.ms", "50");
        p.put("rebalance.backoff.ms", "300");
        p.put("rebalance.max.retries", "50");
        p.put("zookeeper.session.timeout.ms", "3000");
        ConsumerConnector connector = Consumer.createJavaConsumerConnector(new ConsumerConfig(p));
        connectors.put(name, connector);
        List<KafkaStream<byte[], byte[]>> streams = connector.createMessageStreamsByFilter(new Whitelist(regex), count);
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
        p.put("metadata.broker.list", broker);
        p.put("serializer.class", "kafka.serializer.StringEncoder");
        p.put("request.required.acks", "1");
        p.put("message.send.max.retries", "20");
        Producer<String, String> producer = new Producer<>(new ProducerConfig(p));
        for (int i = 2; i < words.length; i++) {
            producer.send(new KeyedMessage<>(words[1], words[i], words[i]));
        }
        producer.close();
        say("sent " + words[1]);
    }
}
