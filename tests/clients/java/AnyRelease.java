import java.lang.reflect.Array;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;

/**
 * What the Java clients of any release since 0.8.2 can do, compiled against each: what not all of them have is called by its name. Arguments:
 * for each broker NAME=ADDRESS=CODEC,CODEC=PART,PART. Prints "NAME PART ok", or "NAME PART" and the error; "ok" at the end.
 */
public class AnyRelease {
    static final String CLIENTS = "org.apache.kafka.clients.";
    static final long SECONDS_MAX = 30;
    static final int EACH = 20;

    final String servers, topic, codecs;
    final long began = System.currentTimeMillis() - 1000000;
    final List<String> sent = new ArrayList<>();
    final TopicPartition place;

    AnyRelease(String servers, String topic, String codecs) {
        this.servers = servers;
        this.topic = topic;
        this.codecs = codecs;
        this.place = new TopicPartition(topic, 0);
    }

    public static void main(String[] arguments) throws Exception {
        String run = Long.toString(System.currentTimeMillis(), 36);
        for (String argument : arguments) {
            String[] words = argument.split("=");
            AnyRelease one = new AnyRelease(words[1], "any-" + run + "-" + words[0], words[2]);
            for (String part : words[3].split(",")) {
                String said = "ok";
                try {
                    AnyRelease.class.getDeclaredMethod(part).invoke(one);
                } catch (InvocationTargetException error) {
                    said = String.valueOf(root(error));
                    if (!said.contains("UnsupportedVersionException")) error.printStackTrace();
                }
                System.out.println(words[0] + " " + part + " " + said);
                System.out.flush();
            }
        }
        System.out.println("ok");
        System.exit(0);
    }

    static Throwable root(Throwable error) {
        Throwable found = error;
        while (found.getCause() != null) found = found.getCause();
        return found;
    }

    // what not all releases have

    static boolean fits(Class<?>[] types, Object[] values) {
        if (types.length != values.length) return false;
        for (int i = 0; i < types.length; i++) {
            Class<?> type = types[i].isPrimitive() ? Array.get(Array.newInstance(types[i], 1), 0).getClass() : types[i];
            if (values[i] != null && !type.isInstance(values[i])) return false;
        }
        return true;
    }

    /** Calls the method of that name that takes these values. IllegalStateException if there is none. */
    static Object call(Object target, String name, Object... values) throws Exception {
        Class<?> type = target instanceof Class ? (Class<?>) target : target.getClass();
        for (Method method : type.getMethods())
            if (method.getName().equals(name) && fits(method.getParameterTypes(), values)) {
                method.setAccessible(true);
                return method.invoke(target instanceof Class ? null : target, values);
            }
        throw new IllegalStateException("no " + name + Arrays.toString(values) + " in " + type);
    }

    static Object made(String name, Object... values) throws Exception {
        for (Constructor<?> constructor : Class.forName(name).getConstructors())
            if (fits(constructor.getParameterTypes(), values)) return constructor.newInstance(values);
        throw new IllegalStateException("no constructor of " + name + Arrays.toString(values));
    }

    static boolean has(Object target, String name) {
        for (Method method : target.getClass().getMethods()) if (method.getName().equals(name)) return true;
        return false;
    }

    static void check(String what, Object found, Object expected) {
        if (!found.equals(expected)) throw new AssertionError(what + ": " + found + " instead of " + expected);
    }

    // producers

    Properties config(String... more) {
        Properties config = new Properties();
        config.put("bootstrap.servers", servers);
        for (int i = 0; i < more.length; i += 2) config.put(more[i], more[i + 1]);
        return config;
    }

    KafkaProducer<String, String> producer(String... more) {
        Properties config = config("enable.idempotence", "false"); // which is true since 3.0, and needs brokers of 0.11
        config.putAll(config(more));
        config.put("linger.ms", "5");
        config.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        config.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        return new KafkaProducer<>(config);
    }

    /** Records with their own times, where the clients have them. */
    @SuppressWarnings("unchecked")
    ProducerRecord<String, String> record(String value) throws Exception {
        Object time = Long.valueOf(began + sent.size());
        sent.add(value);
        for (Constructor<?> one : ProducerRecord.class.getConstructors())
            if (one.getParameterTypes().length == 5 && one.getParameterTypes()[2] == Long.class)
                return (ProducerRecord<String, String>) one.newInstance(topic, 0, time, "k", value);
        return new ProducerRecord<>(topic, 0, "k", value);
    }

    /** One record after another, the next when the last is acknowledged. */
    void sync() throws Exception {
        KafkaProducer<String, String> producer = producer("acks", "1");
        for (int i = 0; i < EACH; i++) {
            long expected = sent.size();
            check("offset", producer.send(record("sync-" + i)).get(SECONDS_MAX, TimeUnit.SECONDS).offset(), expected);
        }
        producer.close();
    }

    /** Many records at once with each codec, which callbacks report. */
    void compressed() throws Exception {
        for (String codec : codecs.split("\\+")) {
            KafkaProducer<String, String> producer = producer("acks", "all", "compression.type", codec);
            final ConcurrentLinkedQueue<Object> reported = new ConcurrentLinkedQueue<>();
            List<Future<RecordMetadata>> futures = new ArrayList<>();
            List<Object> expected = new ArrayList<>();
            for (int i = 0; i < EACH; i++) {
                expected.add((long) sent.size());
                futures.add(producer.send(record(codec + "-" + i), new Callback() {
                    @Override
                    public void onCompletion(RecordMetadata metadata, Exception error) {
                        reported.add(error == null ? metadata.offset() : error);
                    }
                }));
            }
            for (Future<RecordMetadata> future : futures) future.get(SECONDS_MAX, TimeUnit.SECONDS);
            producer.close();
            check("reported", new ArrayList<>(reported), expected);
        }
    }

    /** Records that are not acknowledged; the one after them is, and shows that they are there. */
    void unacknowledged() throws Exception {
        KafkaProducer<String, String> producer = producer("acks", "0");
        for (int i = 0; i < EACH; i++) producer.send(record("none-" + i)).get(SECONDS_MAX, TimeUnit.SECONDS);
        producer.close();
        sync();
    }

    void idempotent() throws Exception {
        KafkaProducer<String, String> producer = producer("acks", "all", "enable.idempotence", "true", "retries", "5");
        for (int i = 0; i < EACH; i++) producer.send(record("idempotent-" + i)).get(SECONDS_MAX, TimeUnit.SECONDS);
        producer.close();
    }

    /** Offsets and records of a transaction that is committed, and of one that is aborted, in topics of their own. */
    void transactional() throws Exception {
        String name = topic + "-tx";
        TopicPartition written = new TopicPartition(name, 0);
        KafkaProducer<String, String> producer = producer("transactional.id", name, "acks", "all", "enable.idempotence", "true", "retries", "5");
        call(producer, "initTransactions");
        for (String end : new String[] {"abortTransaction", "commitTransaction"}) {
            call(producer, "beginTransaction");
            for (int i = 0; i < EACH; i++) producer.send(new ProducerRecord<>(name, 0, "k", end + i));
            Object offsets = Collections.singletonMap(place, made(CLIENTS + "consumer.OffsetAndMetadata", end.startsWith("a") ? 3L : 7L));
            try {
                call(producer, "sendOffsetsToTransaction", offsets, name);
            } catch (IllegalStateException since) {
                call(producer, "sendOffsetsToTransaction", offsets, made(CLIENTS + "consumer.ConsumerGroupMetadata", name));
            }
            call(producer, end);
        }
        producer.close();
        Object consumer = consumer("group.id", name, "isolation.level", "read_committed");
        call(consumer, "assign", Arrays.asList(written));
        call(consumer, "seek", written, 0L);
        List<String> read = read(consumer, EACH);
        for (int i = 0; i < EACH; i++) check("committed", read.get(i), "commitTransaction" + i);
        check("its offset", committed(consumer), 7L);
        call(consumer, "close");
    }

    // consumers

    Object consumer(String... more) {
        Properties config = config(more);
        config.put("auto.offset.reset", "earliest");
        config.put("enable.auto.commit", "false");
        config.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        config.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        return new KafkaConsumer<String, String>(config);
    }

    static Iterable<?> poll(Object consumer) throws Exception {
        try {
            return (Iterable<?>) call(consumer, "poll", Duration.ofMillis(100));
        } catch (IllegalStateException before) {
            return (Iterable<?>) call(consumer, "poll", 100L);
        }
    }

    static List<String> read(Object consumer, int count) throws Exception {
        List<String> read = new ArrayList<>();
        long until = System.currentTimeMillis() + SECONDS_MAX * 1000;
        while (read.size() < count && System.currentTimeMillis() < until)
            for (Object record : poll(consumer)) read.add((String) call(record, "value"));
        return read;
    }

    Object committed(Object consumer) throws Exception {
        Object found;
        try {
            found = call(consumer, "committed", place);
        } catch (IllegalStateException since) {
            found = ((Map<?, ?>) call(consumer, "committed", Collections.singleton(place))).get(place);
        }
        return found == null ? -1L : call(found, "offset");
    }

    /** Everything from the beginning, then from the middle, without a group's members. */
    void assigned() throws Exception {
        Object consumer = consumer("group.id", topic + "-assigned");
        call(consumer, "assign", Arrays.asList(place));
        try {
            call(consumer, "seekToBeginning", Arrays.asList(place));
        } catch (IllegalStateException before) {
            call(consumer, "seekToBeginning", (Object) new TopicPartition[] {place});
        }
        check("read", read(consumer, sent.size()), sent);
        check("position", call(consumer, "position", place), (long) sent.size());
        call(consumer, "seek", place, 30L);
        check("from 30", read(consumer, sent.size() - 30), sent.subList(30, sent.size()));
        call(consumer, "close");
    }

    /** One member reads some and commits; the next one of the group begins there. */
    void grouped() throws Exception {
        List<String> read = new ArrayList<>();
        for (int part = 0; part < 2; part++) {
            Object consumer = consumer("group.id", topic + "-grouped", "client.id", "c" + part, "session.timeout.ms", "10000");
            call(consumer, "subscribe", Arrays.asList(topic));
            if (part == 0) {
                read.addAll(read(consumer, 1));
                call(consumer, "commitSync", Collections.singletonMap(place, made(CLIENTS + "consumer.OffsetAndMetadata", (long) read.size(), "mine")));
            } else {
                read.addAll(read(consumer, sent.size() - read.size()));
                call(consumer, "commitAsync");
                long until = System.currentTimeMillis() + SECONDS_MAX * 1000;
                while (!committed(consumer).equals((long) sent.size()) && System.currentTimeMillis() < until) poll(consumer);
            }
            check("committed", committed(consumer), (long) read.size());
            call(consumer, "close");
        }
        check("read", read, sent);
    }

    /** The ends of a log, and the offsets of times. */
    void times() throws Exception {
        Object consumer = consumer("group.id", topic);
        check("first", ((Map<?, ?>) call(consumer, "beginningOffsets", Arrays.asList(place))).get(place), 0L);
        check("last", ((Map<?, ?>) call(consumer, "endOffsets", Arrays.asList(place))).get(place), (long) sent.size());
        for (long offset : new long[] {0, 7, 25}) {
            Object found = ((Map<?, ?>) call(consumer, "offsetsForTimes", Collections.singletonMap(place, began + offset))).get(place);
            check("offset of a time", call(found, "offset"), offset);
            check("time", call(found, "timestamp"), began + offset);
        }
        call(consumer, "close");
    }

    // the administrator

    Object admin() throws Exception {
        return call(Class.forName(CLIENTS + "admin.AdminClient"), "create", config());
    }

    static Object get(Object future) throws Exception {
        return call(future, "get", SECONDS_MAX, TimeUnit.SECONDS);
    }

    void topics() throws Exception {
        Object admin = admin();
        String name = topic + "-made";
        get(call(call(admin, "createTopics", Collections.singleton(made(CLIENTS + "admin.NewTopic", name, 2, (short) 1))), "all"));
        Object described = call(admin, "describeTopics", Collections.singleton(name));
        Map<?, ?> found = (Map<?, ?>) get(call(described, has(described, "all") ? "all" : "allTopicNames"));
        check("partitions", ((List<?>) call(found.get(name), "partitions")).size(), 2);
        check("listed", ((Collection<?>) get(call(call(admin, "listTopics"), "names"))).contains(name), true);
        check("nodes", ((Collection<?>) get(call(call(admin, "describeCluster"), "nodes"))).size(), 1);
        get(call(call(admin, "deleteTopics", Collections.singleton(name)), "all"));
        call(admin, "close");
    }

    void configs() throws Exception {
        Object admin = admin();
        Class<?> types = Class.forName("org.apache.kafka.common.config.ConfigResource$Type");
        Object resource = made("org.apache.kafka.common.config.ConfigResource", types.getField("TOPIC").get(null), topic);
        Object entry = made(CLIENTS + "admin.ConfigEntry", "retention.ms", "123456789");
        if (!has(admin, "alterConfigs")) {
            Object set = Class.forName(CLIENTS + "admin.AlterConfigOp$OpType").getField("SET").get(null);
            Object change = Collections.singleton(made(CLIENTS + "admin.AlterConfigOp", entry, set));
            get(call(call(admin, "incrementalAlterConfigs", Collections.singletonMap(resource, change)), "all"));
        } else {
            Object change = made(CLIENTS + "admin.Config", Collections.singleton(entry));
            get(call(call(admin, "alterConfigs", Collections.singletonMap(resource, change)), "all"));
        }
        Map<?, ?> found = (Map<?, ?>) get(call(call(admin, "describeConfigs", Collections.singleton(resource)), "all"));
        check("retention", call(call(found.get(resource), "get", "retention.ms"), "value"), "123456789");
        call(admin, "close");
    }

    void partitions() throws Exception {
        Object admin = admin();
        Object wanted = call(Class.forName(CLIENTS + "admin.NewPartitions"), "increaseTo", 3);
        get(call(call(admin, "createPartitions", Collections.singletonMap(topic, wanted)), "all"));
        call(admin, "close");
    }

    void groups() throws Exception {
        Object admin = admin();
        boolean found = false;
        for (Object one : (Collection<?>) get(call(call(admin, "listConsumerGroups"), "all"))) found |= call(one, "groupId").equals(topic + "-grouped");
        check("listed", found, true);
        Object described = ((Map<?, ?>) get(call(call(admin, "describeConsumerGroups", Collections.singleton(topic + "-grouped")), "all"))).get(topic + "-grouped");
        check("members", ((Collection<?>) call(described, "members")).size(), 0);
        Object listed = call(admin, "listConsumerGroupOffsets", topic + "-grouped");
        Map<?, ?> offsets = (Map<?, ?>) get(call(listed, "partitionsToOffsetAndMetadata"));
        check("its offset", call(offsets.get(place), "offset"), (long) sent.size());
        call(admin, "close");
    }

    void deleted() throws Exception {
        Object admin = admin();
        Object before = call(Class.forName(CLIENTS + "admin.RecordsToDelete"), "beforeOffset", 5L);
        get(call(call(admin, "deleteRecords", Collections.singletonMap(place, before)), "all"));
        Object consumer = consumer("group.id", topic);
        check("first", ((Map<?, ?>) call(consumer, "beginningOffsets", Arrays.asList(place))).get(place), 5L);
        call(consumer, "close");
        call(admin, "close");
    }

    void offsets() throws Exception {
        Object admin = admin();
        Object latest = call(Class.forName(CLIENTS + "admin.OffsetSpec"), "latest");
        Map<?, ?> found = (Map<?, ?>) get(call(call(admin, "listOffsets", Collections.singletonMap(place, latest)), "all"));
        check("last", call(found.get(place), "offset"), (long) sent.size());
        call(admin, "close");
    }
}
