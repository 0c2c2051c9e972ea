import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.common.acl.*;
import org.apache.kafka.common.resource.*;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.*;

/** Programs of what goes wrong, and what the application's log says of it. */
class StreamsTroubles {
    static final Map<String, StreamsPrograms.Program> PROGRAMS = Map.of(
        "missing-topics", StreamsTroubles::missingTopics,
        "missing-for-long", StreamsTroubles::missingForLong,
        "wrong-topics", StreamsTroubles::wrongTopics,
        "another-topology", StreamsTroubles::anotherTopology,
        "shutdown", StreamsTroubles::shutdown,
        "internal-topic-deleted", StreamsTroubles::internalTopicDeleted,
        "more-partitions", StreamsTroubles::morePartitions,
        "denied", StreamsTroubles::denied);

    /** Copies `<id>-in` to `<id>-out`. */
    static Topology copy(StreamsRun run) {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(run.id + "-in").to(run.id + "-out");
        return builder.build();
    }

    /** An application waits for its source topic. */
    static void missingTopics(StreamsRun run) throws Exception {
        run.group("streams.heartbeat.interval.ms", 5000);
        KafkaStreams streams = run.start(run.words());
        run.logs("Source topics " + run.id + "-in are missing.");
        run.logs("Missing source topics detected: Source topics " + run.id + "-in are missing.. Will wait up to 10000ms before failing.");
        run.wordTopics(2);
        StreamsRun.run(4, streams);
        run.lines(20, 2);
        run.counted();
    }

    /** It gives up after two intervals of heartbeats. */
    static void missingForLong(StreamsRun run) throws Exception {
        KafkaStreams streams = run.start(run.words());
        StreamsRun.reaches(streams, KafkaStreams.State.ERROR);
        run.logs("Missing source topics detected: Source topics " + run.id + "-in are missing.. Will wait up to 400ms before failing.");
        run.logs("MissingSourceTopicException: Missing source topics: Source topics " + run.id + "-in are missing.. Timeout exceeded after ");
    }

    /** Topics that are joined have different numbers of partitions; a source is a topic of Kafka's own. */
    static void wrongTopics(StreamsRun run) throws Exception {
        run.topics("-in", 2, "-other", 3, "-out", 1);
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> one = builder.stream(run.id + "-in"), other = builder.stream(run.id + "-other");
        one.join(other, (left, right) -> left + right, JoinWindows.ofTimeDifferenceWithNoGrace(Duration.ofMinutes(1))).to(run.id + "-out");
        KafkaStreams streams = run.start(builder.build());
        StreamsRun.reaches(streams, KafkaStreams.State.ERROR);
        run.logs("Following topics do not have the same number of partitions: [{" + run.id + "-in=2, " + run.id + "-other=3}]");
        streams.close();
        StreamsBuilder wrong = new StreamsBuilder();
        wrong.stream("__consumer_offsets").to(run.id + "-out");
        StreamsRun.reaches(run.start(wrong.build(), StreamsConfig.APPLICATION_ID_CONFIG, run.id + "-internal"), KafkaStreams.State.ERROR);
        run.logs("Use of Kafka internal topics __consumer_offsets in a Kafka Streams topology is prohibited.");
    }

    /** A topology stays until its group is deleted; who comes with another one is refused, and the others go on. */
    static void anotherTopology(StreamsRun run) throws Exception {
        run.wordTopics(2);
        KafkaStreams first = run.start(run.words());
        StreamsRun.run(4, first);
        KafkaStreams second = run.start(copy(run));
        StreamsRun.reaches(second, KafkaStreams.State.ERROR);
        run.logs("Topology updates are not supported yet.");
        run.lines(20, 2);
        run.counted();
        StreamsRun.run(4, first);
        first.close();
        KafkaStreams third = run.start(copy(run));
        StreamsRun.reaches(third, KafkaStreams.State.ERROR);
        run.admin.deleteStreamsGroups(List.of(run.id)).all().get();
        StreamsRun.run(2, run.start(copy(run)));
    }

    /** An instance whose handler decides so takes all others down. */
    static void shutdown(StreamsRun run) throws Exception {
        run.topics("-in", 2, "-out", 1);
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(run.id + "-in").peek((key, value) -> {
            throw new IllegalStateException("poison");
        }).to(run.id + "-out");
        KafkaStreams[] all = new KafkaStreams[2];
        for (int at = 0; at < all.length; at++) {
            all[at] = new KafkaStreams(builder.build(), run.config());
            all[at].setUncaughtExceptionHandler(error -> StreamThreadExceptionResponse.SHUTDOWN_APPLICATION);
            run.started(all[at]);
        }
        StreamsRun.run(1, all);
        run.lines(1, 1);
        for (KafkaStreams one : all) StreamsRun.reaches(one, KafkaStreams.State.ERROR);
        run.logs("Detected that shutdown was requested. All clients in this app will now begin to shutdown");
        StreamsRun.until("empty", () -> run.described().members().isEmpty());
    }

    /** The broker creates an internal topic again that was deleted, and the application goes on; its counts are those of the changelog. */
    static void internalTopicDeleted(StreamsRun run) throws Exception {
        run.wordTopics(2);
        KafkaStreams streams = run.start(run.words());
        StreamsRun.run(4, streams);
        run.lines(20, 2);
        run.counted();
        for (String ending : List.of("-words-repartition", "-counts-changelog")) {
            String name = run.id + ending;
            var before = run.admin.describeTopics(List.of(name)).allTopicNames().get().get(name).topicId();
            run.admin.deleteTopics(List.of(name)).all().get();
            StreamsRun.until(name + " again", () -> {
                try {
                    return !run.admin.describeTopics(List.of(name)).allTopicNames().get().get(name).topicId().equals(before);
                } catch (Exception error) {
                    return false;
                }
            });
            StreamsRun.run(4, streams);
            if (ending.endsWith("-changelog")) run.begins(false);
            run.lines(20, 2);
            run.counted();
        }
    }

    /** A source topic that grows gives tasks to an application without internal topics, and ends one whose internal topics stay small. */
    static void morePartitions(StreamsRun run) throws Exception {
        run.wordTopics(2);
        KafkaStreams copies = run.start(copy(run), StreamsConfig.APPLICATION_ID_CONFIG, run.id + "-copy");
        KafkaStreams counts = run.start(run.words());
        StreamsRun.run(2, copies);
        StreamsRun.run(4, counts);
        run.admin.createPartitions(Map.of(run.id + "-in", NewPartitions.increaseTo(4))).all().get();
        StreamsRun.run(4, copies);
        StreamsRun.reaches(counts, KafkaStreams.State.ERROR);
        run.logs("has different number of partitions: expected 4, found 2");
    }

    /** Who may not create internal topics is told which, and goes on when he may. */
    static void denied(StreamsRun run) throws Exception {
        run.wordTopics(2);
        allow(run, ResourceType.GROUP, run.id, AclOperation.READ);
        allow(run, ResourceType.TRANSACTIONAL_ID, run.id, AclOperation.WRITE);
        for (AclOperation operation : List.of(AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE)) allow(run, ResourceType.TOPIC, run.id, operation);
        KafkaStreams streams = run.start(run.words());
        String line = run.logs("Unauthorized to CREATE on topics ");
        for (String name : List.of("-words-repartition", "-counts-changelog")) StreamsRun.holds(line.contains(run.id + name), line);
        StreamsRun.holds(line.contains("Internal topics are missing: "), line);
        StreamsRun.equal(StreamsTopologies.internal(run), Map.of(), "internal topics");
        allow(run, ResourceType.TOPIC, run.id, AclOperation.CREATE);
        StreamsRun.run(4, streams);
        run.lines(20, 2);
        run.counted();
    }

    /** Allows the user of the application something on what begins with a name. */
    static void allow(StreamsRun run, ResourceType type, String prefix, AclOperation operation) throws Exception {
        AccessControlEntry entry = new AccessControlEntry("User:" + run.options.get("user"), "*", operation, AclPermissionType.ALLOW);
        run.admin.createAcls(List.of(new AclBinding(new ResourcePattern(type, prefix, PatternType.PREFIXED), entry))).all().get();
    }
}
