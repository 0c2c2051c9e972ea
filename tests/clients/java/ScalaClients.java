import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import kafka.api.FetchRequestBuilder;
import kafka.api.PartitionOffsetRequestInfo;
import kafka.common.OffsetAndMetadata;
import kafka.common.TopicAndPartition;
import kafka.consumer.Consumer;
import kafka.consumer.ConsumerConfig;
import kafka.consumer.ConsumerIterator;
import kafka.consumer.KafkaStream;
import kafka.javaapi.OffsetCommitRequest;
import kafka.javaapi.OffsetFetchRequest;
import kafka.javaapi.OffsetRequest;
import kafka.javaapi.consumer.ConsumerConnector;
import kafka.javaapi.consumer.SimpleConsumer;
import kafka.javaapi.message.ByteBufferMessageSet;
import kafka.javaapi.producer.Producer;
import kafka.message.MessageAndMetadata;
import kafka.message.MessageAndOffset;
import kafka.producer.KeyedMessage;
import kafka.producer.ProducerConfig;

/**
 * The Scala producer, SimpleConsumer and high-level consumer of Kafka 0.8.2 to 1.1, compiled against each. Arguments: for each broker
 * NAME=HOST:PORT=ZOOKEEPER. Prints "NAME ok" for each, and "ok" at the end.
 */
public class ScalaClients {
    static final int EACH = 20;

    final String broker, topic, zookeeper;
    final List<String> sent = new ArrayList<>();

    ScalaClients(String broker, String topic, String zookeeper) {
        this.broker = broker;
        this.topic = topic;
        this.zookeeper = zookeeper;
    }

    public static void main(String[] arguments) throws Exception {
        String run = Long.toString(System.currentTimeMillis(), 36);
        for (String argument : arguments) {
            String[] words = argument.split("=");
            ScalaClients one = new ScalaClients(words[1], "scala-" + run, words[2]);
            one.produce();
            one.read();
            one.offsets();
            for (String storage : new String[] {"zookeeper", "kafka"}) one.consume(storage);
            System.out.println(words[0] + " ok");
            System.out.flush();
        }
        System.out.println("ok");
        System.exit(0);
    }

    static void check(String what, Object found, Object expected) {
        if (!found.equals(expected)) throw new AssertionError(what + ": " + found + " instead of " + expected);
    }

    /** One after another and many at once, with each codec, with and without acknowledgements. */
    void produce() throws Exception {
        for (String type : new String[] {"sync", "async"})
            for (String codec : new String[] {"none", "gzip", "snappy"})
                for (String acks : new String[] {"-1", "1"}) {
                    Properties p = new Properties();
                    p.put("metadata.broker.list", broker);
                    p.put("serializer.class", "kafka.serializer.StringEncoder");
                    p.put("producer.type", type);
                    p.put("compression.codec", codec);
                    p.put("request.required.acks", acks);
                    p.put("message.send.max.retries", "20");
                    Producer<String, String> producer = new Producer<>(new ProducerConfig(p));
                    List<KeyedMessage<String, String>> messages = new ArrayList<>();
                    for (int i = 0; i < EACH; i++) {
                        String value = type + "-" + codec + "-" + acks + "-" + i;
                        sent.add(value);
                        messages.add(new KeyedMessage<String, String>(topic, "k" + i, value));
                    }
                    producer.send(messages);
                    producer.close(); // sends what waits
                }
    }

    SimpleConsumer simple() {
        return new SimpleConsumer(broker.split(":")[0], Integer.parseInt(broker.split(":")[1]), 20000, 100000, "simple");
    }

    static String text(ByteBuffer payload) {
        byte[] bytes = new byte[payload.remaining()];
        payload.get(bytes);
        return new String(bytes);
    }

    void read() {
        SimpleConsumer consumer = simple();
        List<String> found = new ArrayList<>();
        long next = 0;
        while (next < sent.size()) {
            FetchRequestBuilder builder = new FetchRequestBuilder().clientId("simple").addFetch(topic, 0, next, 3000);
            ByteBufferMessageSet messages = consumer.fetch(builder.build()).messageSet(topic, 0);
            for (MessageAndOffset one : messages)
                if (one.offset() >= next) { // a compressed message begins before what was asked for
                    check("offset", one.offset(), next);
                    found.add(text(one.message().payload()));
                    next = one.nextOffset();
                }
        }
        check("read", found, sent);
        consumer.close();
    }

    void offsets() {
        SimpleConsumer consumer = simple();
        TopicAndPartition place = new TopicAndPartition(topic, 0);
        long[][] expected = {{-2, 0}, {-1, sent.size()}};
        for (long[] one : expected) {
            Map<TopicAndPartition, PartitionOffsetRequestInfo> asked = Collections.singletonMap(place, new PartitionOffsetRequestInfo(one[0], 1));
            long[] found = consumer.getOffsetsBefore(new OffsetRequest(asked, (short) 0, "simple")).offsets(topic, 0);
            check("offsets", found[0], one[1]);
        }
        for (short version = 0; version < 2; version++) { // in ZooKeeper, and in Kafka
            String group = "simple-" + topic + version;
            Map<TopicAndPartition, OffsetAndMetadata> committed = new HashMap<>();
            committed.put(place, OffsetAndMetadata.apply(5L + version, "mine", System.currentTimeMillis()));
            check("errors", consumer.commitOffsets(new OffsetCommitRequest(group, committed, 1, "simple", version)).hasError(), false);
            OffsetFetchRequest asked = new OffsetFetchRequest(group, Arrays.asList(place), version, 2, "simple");
            check("committed", consumer.fetchOffsets(asked).offsets().get(place).offset(), 5L + version);
        }
        consumer.close();
    }

    /** A consumer reads half and commits; the next one of the group goes on there. */
    void consume(String storage) {
        List<String> found = new ArrayList<>();
        for (int half = 0; half < 2; half++) {
            Properties p = new Properties();
            p.put("zookeeper.connect", zookeeper);
            p.put("group.id", "high-" + topic + storage);
            p.put("auto.offset.reset", "smallest");
            p.put("auto.commit.enable", "false");
            p.put("offsets.storage", storage);
            p.put("dual.commit.enabled", "false");
            p.put("consumer.timeout.ms", "20000");
            ConsumerConnector connector = Consumer.createJavaConsumerConnector(new ConsumerConfig(p));
            Map<String, Integer> wanted = Collections.singletonMap(topic, 1);
            KafkaStream<byte[], byte[]> stream = connector.createMessageStreams(wanted).get(topic).get(0);
            ConsumerIterator<byte[], byte[]> messages = stream.iterator();
            while (found.size() < (half + 1) * sent.size() / 2) {
                MessageAndMetadata<byte[], byte[]> one = messages.next();
                check("offset", one.offset(), (long) found.size());
                found.add(new String(one.message()));
            }
            connector.commitOffsets();
            connector.shutdown();
        }
        check("consumed", found, sent);
    }
}
