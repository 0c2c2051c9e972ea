import java.util.*;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;

/** What an application does when a heartbeat of its only instance fails. */
class StreamsErrors {
    static final Map<String, StreamsPrograms.Program> PROGRAMS = Map.of("error", StreamsErrors::error);

    /**
     * The test has a heartbeat fail (`fail`), says how many more there were since (`since`), and is told what the instance does: it goes on, goes on after it
     * has lost its tasks, or ends with an exception. One that goes on does its work.
     */
    static void error(StreamsRun run) throws Exception {
        run.topics("-in", 1, "-out", 1);
        AtomicReference<Throwable> ended = new AtomicReference<>();
        Queue<KafkaStreams.State> states = new java.util.concurrent.ConcurrentLinkedQueue<>();
        KafkaStreams streams = new KafkaStreams(StreamsTroubles.copy(run), run.config());
        streams.setUncaughtExceptionHandler(error -> {
            ended.set(error);
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.setStateListener((next, before) -> states.add(next));
        run.started(streams);
        StreamsRun.run(1, streams);
        run.stable();
        states.clear();
        run.ask("fail");
        StreamsRun.until("what the instance does", () -> streams.state() == KafkaStreams.State.ERROR || Integer.parseInt(run.ask("since")) > 2);
        if (streams.state() == KafkaStreams.State.ERROR) {
            Throwable cause = ended.get();
            while (cause.getCause() != null) cause = cause.getCause();
            run.ask("does ends with " + cause.getClass().getSimpleName());
            return;
        }
        StreamsRun.run(1, streams);
        run.lines(1, 1);
        Map<TopicPartition, OffsetSpec> end = Map.of(new TopicPartition(run.id + "-out", 0), OffsetSpec.latest());
        StreamsRun.until("the copy of a record", () -> run.sum(end) > 0);
        run.ask(states.isEmpty() ? "does goes on" : "does joins again");
    }
}
