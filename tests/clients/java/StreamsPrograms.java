import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.concurrent.*;

/**
 * Programs of Kafka Streams with group.protocol=streams, in one process. A line of its input is `run <program> <id> <key>=<value>...`, or
 * `reply <id> <words>` to what a program asked; each run has a thread. A line of its output is `<id> ask <words>`, `<id> ok` or
 * `<id> failed <what, with its lines joined>`.
 */
public class StreamsPrograms {
    interface Program {
        void run(StreamsRun run) throws Exception;
    }

    static final Map<String, Program> PROGRAMS = new TreeMap<>();
    static final Map<String, BlockingQueue<String>> replies = new ConcurrentHashMap<>();

    static {
        PROGRAMS.putAll(StreamsInstances.PROGRAMS);
        PROGRAMS.putAll(StreamsTopologies.PROGRAMS);
        PROGRAMS.putAll(StreamsOthers.PROGRAMS);
        PROGRAMS.putAll(StreamsTroubles.PROGRAMS);
        PROGRAMS.putAll(StreamsErrors.PROGRAMS);
    }

    static synchronized void tell(String line) {
        System.out.println(line);
        System.out.flush();
    }

    static void run(String name, String id, Map<String, String> options) {
        replies.put(id, new LinkedBlockingQueue<>());
        try (StreamsRun run = new StreamsRun(id, options, words -> asked(id, words))) {
            PROGRAMS.get(name).run(run);
            tell(id + " ok");
        } catch (Throwable error) {
            StringWriter text = new StringWriter();
            error.printStackTrace(new PrintWriter(text));
            List<String> log = StreamsLog.of(id).stream().filter(line -> line.contains(" transition") || !line.startsWith("INFO")).toList();
            text.write(String.join("\n", log.subList(Math.max(0, log.size() - 60), log.size())));
            tell(id + " failed " + Base64.getEncoder().encodeToString(text.toString().getBytes(StandardCharsets.UTF_8)));
        }
    }

    static String asked(String id, String words) {
        tell(id + " ask " + words);
        try {
            return replies.get(id).take();
        } catch (InterruptedException error) {
            throw new RuntimeException(error);
        }
    }

    public static void main(String[] none) throws Exception {
        StreamsLog.keep();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null;) {
            String[] words = line.split(" ", 3);
            if (words[0].equals("reply")) {
                replies.get(words[1]).add(words.length > 2 ? words[2] : "");
                continue;
            }
            String[] of = line.split(" ");
            Map<String, String> options = new HashMap<>();
            for (int at = 3; at < of.length; at++) options.put(of[at].substring(0, of[at].indexOf('=')), of[at].substring(of[at].indexOf('=') + 1));
            Thread thread = new Thread(() -> run(of[1], of[2], options), "run " + of[1]);
            thread.setDaemon(true);
            thread.start();
        }
        Runtime.getRuntime().halt(0);
    }
}
