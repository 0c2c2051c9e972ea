import com.sun.net.httpserver.HttpServer;
import java.net.*;
import java.net.http.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.state.*;

/** Programs of instances that ask each other, of those that are killed, of a broker that is killed, and of other protocols. */
class StreamsOthers {
    static final int PARTITIONS = 4;
    /** A transaction of an instance that was killed holds its records back until it times out. */
    static final Object[] SHORT_TRANSACTIONS = {StreamsConfig.producerPrefix("transaction.timeout.ms"), 10_000};
    static final Map<String, StreamsPrograms.Program> PROGRAMS = Map.of(
        "queries", StreamsOthers::queries,
        "instance-killed", StreamsOthers::instanceKilled,
        "broker-killed", StreamsOthers::brokerKilled,
        "migration", StreamsOthers::migration,
        "reset", StreamsOthers::reset);

    /** An instance that answers what its store has of a word. */
    static class Answering implements AutoCloseable {
        final HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        final KafkaStreams streams;
        final HostInfo host = new HostInfo("127.0.0.1", server.getAddress().getPort());

        Answering(StreamsRun run) throws Exception {
            streams = run.start(run.words(), StreamsConfig.APPLICATION_SERVER_CONFIG, host.host() + ":" + host.port());
            server.createContext("/", exchange -> {
                byte[] answer = count(exchange.getRequestURI().getPath().substring(1)).getBytes(StandardCharsets.UTF_8);
                exchange.sendResponseHeaders(200, answer.length);
                exchange.getResponseBody().write(answer);
                exchange.close();
            });
            server.start();
        }

        String count(String word) {
            try {
                ReadOnlyKeyValueStore<String, Long> store = streams.store(StoreQueryParameters.fromNameAndType("counts", QueryableStoreTypes.keyValueStore()));
                return String.valueOf(store.get(word));
            } catch (RuntimeException moving) {
                return moving.toString();
            }
        }

        HostInfo ownerOf(String word) {
            return streams.queryMetadataForKey("counts", word, new StringSerializer()).activeHost();
        }

        @Override
        public void close() {
            server.stop(0);
        }
    }

    static String ask(HostInfo host, String word) {
        try {
            HttpRequest request = HttpRequest.newBuilder(URI.create("http://" + host.host() + ":" + host.port() + "/" + word)).build();
            return HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString()).body();
        } catch (Exception error) {
            return error.toString();
        }
    }

    /** Each of two instances knows which one has a word, and asks it. */
    static void queries(StreamsRun run) throws Exception {
        run.wordTopics(PARTITIONS);
        run.group("streams.num.standby.replicas", 1);
        Answering one = new Answering(run);
        StreamsRun.run(2 * PARTITIONS, one.streams);
        Answering other = new Answering(run);
        try (one; other) {
            StreamsRun.run(PARTITIONS, one.streams, other.streams);
            run.lines(30, PARTITIONS);
            run.counted();
            Set<HostInfo> both = Set.of(one.host, other.host), owners = new HashSet<>();
            for (Answering instance : List.of(one, other)) {
                StreamsRun.until("owners and copies of all words are known", () -> knows(run, instance, both), () -> instance.streams.metadataForAllStreamsClients());
                for (String word : StreamsRun.WORDS) {
                    StreamsRun.until("the owner answers for " + word, () -> ask(instance.ownerOf(word), word).equals("30"), () -> instance.ownerOf(word));
                    KeyQueryMetadata of = instance.streams.queryMetadataForKey("counts", word, new StringSerializer());
                    owners.add(of.activeHost());
                    StreamsRun.holds(of.standbyHosts().size() == 1 && !of.standbyHosts().contains(of.activeHost()), "a standby of " + word + " is elsewhere: " + of);
                }
            }
            StreamsRun.holds(both.containsAll(owners), "owners " + owners);
            one.streams.close();
            StreamsRun.run(2 * PARTITIONS, other.streams);
            for (String word : StreamsRun.WORDS)
                StreamsRun.until("the other has " + word, () -> other.ownerOf(word).equals(other.host) && other.count(word).equals("30"), () -> other.ownerOf(word));
        }
    }

    /** Whether an instance knows, of each partition of the words, which of both owns it, and that the other one has its copy. */
    static boolean knows(StreamsRun run, Answering instance, Set<HostInfo> both) {
        Map<TopicPartition, HostInfo> owners = new HashMap<>(), copies = new HashMap<>();
        for (StreamsMetadata of : instance.streams.streamsMetadataForStore("counts")) {
            for (TopicPartition one : of.topicPartitions()) if (one.topic().equals(run.id + "-words-repartition")) owners.put(one, of.hostInfo());
            for (TopicPartition one : of.standbyTopicPartitions()) if (one.topic().equals(run.id + "-words-repartition")) copies.put(one, of.hostInfo());
        }
        return owners.size() == PARTITIONS && copies.keySet().equals(owners.keySet()) && Set.copyOf(owners.values()).equals(both)
            && owners.keySet().stream().noneMatch(one -> owners.get(one).equals(copies.get(one)));
    }

    /** An instance in a process of its own is killed; its session ends, its transaction too, and the other one takes its tasks. */
    static void instanceKilled(StreamsRun run) throws Exception {
        run.wordTopics(PARTITIONS);
        run.group("streams.session.timeout.ms", 10_000);
        KafkaStreams first = run.start(run.words(), SHORT_TRANSACTIONS);
        StreamsRun.run(2 * PARTITIONS, first);
        List<String> command = List.of(ProcessHandle.current().info().command().get(), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256M",
            "-cp", System.getProperty("java.class.path"), "StreamsOthers", run.id, "servers=" + run.servers, "state=" + run.state);
        Process other = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.DISCARD).redirectOutput(ProcessBuilder.Redirect.DISCARD).start();
        try (StreamsRun.Traffic traffic = run.new Traffic(PARTITIONS)) {
            StreamsRun.run(PARTITIONS, first);
            run.stable();
            other.destroyForcibly().waitFor();
            StreamsRun.run(2 * PARTITIONS, first);
        } finally {
            other.destroyForcibly();
        }
        run.counted();
    }

    /** The process that is killed: an instance that runs until its input ends. */
    public static void main(String[] arguments) throws Exception {
        Map<String, String> options = new HashMap<>();
        for (String one : arguments) if (one.contains("=")) options.put(one.substring(0, one.indexOf('=')), one.substring(one.indexOf('=') + 1));
        StreamsRun run = new StreamsRun(arguments[0], options, words -> "");
        run.start(run.words(), SHORT_TRANSACTIONS);
        while (System.in.read() >= 0) continue;
        Runtime.getRuntime().halt(0);
    }

    /** The broker is killed under traffic. */
    static void brokerKilled(StreamsRun run) throws Exception {
        run.wordTopics(PARTITIONS);
        KafkaStreams first = run.start(run.words()), second = run.start(run.words());
        StreamsRun.run(PARTITIONS, first, second);
        try (StreamsRun.Traffic traffic = run.new Traffic(PARTITIONS)) {
            StreamsRun.until("traffic", () -> run.said.getOrDefault("to", 0) > 20);
            run.ask("kill");
            int before = run.said.get("to");
            StreamsRun.until("traffic after that", () -> run.said.get("to") > before);
        }
        run.recounts(PARTITIONS);
        run.counted();
        StreamsRun.run(PARTITIONS, first, second);
    }

    /** From the classic protocol to the new one and back, without members in between. With members, the other protocol is refused. */
    static void migration(StreamsRun run) throws Exception {
        run.wordTopics(PARTITIONS);
        KafkaStreams classic = run.start(run.words(), StreamsConfig.GROUP_PROTOCOL_CONFIG, "classic");
        StreamsRun.run(2 * PARTITIONS, classic);
        run.lines(20, PARTITIONS);
        KafkaStreams early = run.start(run.words());
        StreamsRun.reaches(early, KafkaStreams.State.ERROR);
        run.logs("Group " + run.id + " is not a streams group.");
        run.counted();
        classic.close(CloseOptions.groupMembershipOperation(CloseOptions.GroupMembershipOperation.LEAVE_GROUP));
        KafkaStreams streams = run.start(run.words());
        StreamsRun.run(2 * PARTITIONS, streams);
        run.lines(20, PARTITIONS);
        run.counted();
        KafkaStreams late = run.start(run.words(), StreamsConfig.GROUP_PROTOCOL_CONFIG, "classic");
        StreamsRun.reaches(late, KafkaStreams.State.ERROR);
        run.logs("InconsistentGroupProtocolException");
        streams.close();
        KafkaStreams again = run.start(run.words(), StreamsConfig.GROUP_PROTOCOL_CONFIG, "classic");
        StreamsRun.run(2 * PARTITIONS, again);
        run.lines(20, PARTITIONS);
        run.counted();
    }

    /** Kafka's tool resets an application that does not run: it begins again at the start of its input, with new internal topics. */
    static void reset(StreamsRun run) throws Exception {
        run.wordTopics(PARTITIONS);
        KafkaStreams first = run.start(run.words());
        StreamsRun.run(2 * PARTITIONS, first);
        run.lines(10, PARTITIONS);
        run.counted();
        String tool = "tool StreamsResetter --application-id " + run.id + " --input-topics " + run.id + "-in";
        String refused = run.ask(tool);
        StreamsRun.holds(refused.startsWith("1 ") && refused.contains("CommitFailedException"), refused);
        StreamsRun.run(2 * PARTITIONS, first);
        first.close();
        StreamsRun.until("empty", () -> run.described().groupState() == GroupState.EMPTY);
        String done = run.ask(tool);
        StreamsRun.holds(done.startsWith("0 ") && done.contains("Deleting inferred internal topics ["), done);
        StreamsRun.until("no internal topics", () -> run.admin.listTopics().names().get().stream()
            .noneMatch(name -> name.equals(run.id + "-words-repartition") || name.equals(run.id + "-counts-changelog")));
        run.begins(true);
        KafkaStreams second = run.start(run.words());
        StreamsRun.run(2 * PARTITIONS, second);
        run.counted();
    }
}
