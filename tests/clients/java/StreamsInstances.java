import java.util.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.streams.*;

/** Programs whose instances come, stop and are replaced, while records come in. Each record is counted once. */
class StreamsInstances {
    static final int PARTITIONS = 4;
    static final Map<String, StreamsPrograms.Program> PROGRAMS = Map.of(
        "scale", StreamsInstances::scale,
        "standbys", StreamsInstances::standbys,
        "rolling", StreamsInstances::rolling);

    /** One instance, two, four, one. */
    static void scale(StreamsRun run) throws Exception {
        run.wordTopics(PARTITIONS);
        KafkaStreams first = run.start(run.words());
        StreamsRun.run(2 * PARTITIONS, first);
        try (StreamsRun.Traffic traffic = run.new Traffic(PARTITIONS)) {
            KafkaStreams second = run.start(run.words());
            StreamsRun.run(PARTITIONS, first, second);
            KafkaStreams third = run.start(run.words()), fourth = run.start(run.words());
            StreamsRun.run(PARTITIONS / 2, first, second, third, fourth);
            run.stable();
            StreamsGroupDescription group = run.described();
            StreamsRun.equal(group.members().size(), 4, "members");
            StreamsRun.equal(group.subtopologies().size(), 2, "subtopologies");
            StreamsRun.equal(group.targetAssignmentEpoch(), group.groupEpoch(), "the target's epoch");
            second.close();
            third.close();
            fourth.close();
            StreamsRun.run(2 * PARTITIONS, first);
        }
        run.counted();
        first.close();
        StreamsRun.until("empty", () -> run.described().groupState() == GroupState.EMPTY);
        run.admin.deleteStreamsGroups(List.of(run.id)).all().get();
    }

    /** Each task has a standby in the other process, which goes on where the first stopped. */
    static void standbys(StreamsRun run) throws Exception {
        run.wordTopics(PARTITIONS);
        run.group("streams.num.standby.replicas", 1);
        run.group("streams.num.warmup.replicas", 2);
        KafkaStreams first = run.start(run.words());
        StreamsRun.run(2 * PARTITIONS, first);
        StreamsRun.equal(StreamsRun.standbys(first), 0, "standby tasks of the only instance");
        run.lines(40, PARTITIONS);
        KafkaStreams second = run.start(run.words());
        StreamsRun.run(PARTITIONS, first, second);
        StreamsRun.until("standby tasks", () -> StreamsRun.standbys(first) + StreamsRun.standbys(second) == PARTITIONS,
            () -> List.of(StreamsRun.standbys(first), StreamsRun.standbys(second)));
        run.stable();
        for (StreamsGroupMemberDescription member : run.described().members()) {
            StreamsRun.equal(member.assignment().warmupTasks(), List.of(), "warm-up tasks");
            Set<String> active = tasks(member.assignment().activeTasks()), standby = tasks(member.assignment().standbyTasks());
            StreamsRun.holds(Collections.disjoint(active, standby), "a standby is not in the process that runs the task: " + member);
            StreamsRun.holds(standby.stream().allMatch(task -> task.startsWith("1-")), "only tasks with state have a standby: " + standby);
        }
        run.lines(40, PARTITIONS);
        first.close();
        StreamsRun.run(2 * PARTITIONS, second);
        run.lines(40, PARTITIONS);
        run.counted();
    }

    static Set<String> tasks(List<StreamsGroupMemberAssignment.TaskIds> of) {
        Set<String> found = new TreeSet<>();
        for (StreamsGroupMemberAssignment.TaskIds one : of)
            for (int partition : one.partitions()) found.add(one.subtopologyId() + "-" + partition);
        return found;
    }

    /** A rolling restart. Streams 4.3 refuses static ids, and leaves the group when it closes: each step moves tasks. */
    static void rolling(StreamsRun run) throws Exception {
        run.wordTopics(PARTITIONS);
        try {
            run.start(run.words(), StreamsConfig.consumerPrefix("group.instance.id"), "a");
            throw new AssertionError("Streams takes a static id");
        } catch (org.apache.kafka.common.config.ConfigException refused) {
            StreamsRun.holds(refused.getMessage().startsWith("Streams rebalance protocol does not support static membership."), refused.getMessage());
        }
        KafkaStreams[] all = new KafkaStreams[3];
        for (int at = 0; at < all.length; at++) all[at] = run.start(run.words());
        shared(2 * PARTITIONS, all);
        try (StreamsRun.Traffic traffic = run.new Traffic(PARTITIONS)) {
            for (int at = 0; at < all.length; at++) {
                all[at].close();
                all[at] = run.start(run.words());
                shared(2 * PARTITIONS, all);
            }
        }
        run.counted();
    }

    /** Waits until all tasks are shared by the instances. */
    static void shared(int tasks, KafkaStreams... all) throws Exception {
        StreamsRun.until("tasks in each of " + all.length + " instances",
            () -> Arrays.stream(all).allMatch(one -> one.state() == KafkaStreams.State.RUNNING && StreamsRun.tasks(one) >= tasks / all.length)
                && Arrays.stream(all).mapToInt(StreamsRun::tasks).sum() == tasks,
            () -> Arrays.stream(all).map(one -> one.state() + " " + StreamsRun.tasks(one)).toList());
    }
}
