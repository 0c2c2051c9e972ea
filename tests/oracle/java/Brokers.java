import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import kafka.tools.StorageTool;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.common.utils.internals.Exit;

/**
 * Runs brokers and controllers of Kafka in one process, which starts and compiles once for all of them. It prints the port on which it
 * listens. The client of a connection sends a number of texts. "start" and the path of a server.properties: it is answered when this
 * broker has started; when the client says no more the broker stops, and there is another answer. "format" and the other arguments of
 * StorageTool: formats directories. An answer is an empty text, or what went wrong. The process ends with its standard input.
 */
public class Brokers {
    /** A broker that cannot go on wants to end its process. */
    static void end(int code, String message) {
        throw new Error("a broker ends with code " + code + ": " + message);
    }

    public static void main(String[] none) throws Exception {
        Exit.setExitProcedure(Brokers::end);
        Exit.setHaltProcedure(Brokers::end);
        ServerSocket listener = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        System.out.println(listener.getLocalPort());
        new Thread(Brokers::endWithInput).start();
        while (true) {
            Socket socket = listener.accept();
            new Thread(() -> serve(socket)).start();
        }
    }

    static void endWithInput() {
        try {
            System.in.read();
        } catch (IOException broken) {
            // it has ended, too
        }
        Runtime.getRuntime().halt(0);
    }

    static void serve(Socket socket) {
        try (socket) {
            DataInputStream requests = new DataInputStream(socket.getInputStream());
            DataOutputStream answers = new DataOutputStream(socket.getOutputStream());
            String[] words = new String[requests.readInt()];
            for (int at = 0; at < words.length; at++) {
                words[at] = Texts.read(requests);
            }
            if (words[0].equals("format")) {
                answer(answers, formatted(words));
            } else {
                run(words[1], requests, answers);
            }
        } catch (IOException gone) {
            gone.printStackTrace();
        }
    }

    static String formatted(String[] words) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        String failure = failure(() -> {
            int code = StorageTool.execute(words, new PrintStream(out, true, StandardCharsets.UTF_8));
            if (code != 0) {
                throw new IllegalArgumentException("exit code " + code);
            }
        });
        return failure.isEmpty() ? "" : failure + out.toString(StandardCharsets.UTF_8);
    }

    static void run(String path, DataInputStream requests, DataOutputStream answers) throws IOException {
        KafkaRaftServer[] broker = new KafkaRaftServer[1];
        String failure = failure(() -> {
            broker[0] = new KafkaRaftServer(KafkaConfig.fromProps(Utils.loadProps(path), false), Time.SYSTEM);
            broker[0].startup();
        });
        answer(answers, failure);
        if (failure.isEmpty()) {
            requests.read();
            answer(answers, failure(() -> {
                broker[0].shutdown();
                broker[0].awaitShutdown();
            }));
        }
    }

    interface Action {
        void run() throws Exception;
    }

    /** The stack of what an action throws, or an empty text. */
    static String failure(Action action) {
        try {
            action.run();
            return "";
        } catch (Throwable thrown) {
            ByteArrayOutputStream text = new ByteArrayOutputStream();
            thrown.printStackTrace(new PrintStream(text, true, StandardCharsets.UTF_8));
            return text.toString(StandardCharsets.UTF_8);
        }
    }

    static void answer(DataOutputStream answers, String text) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        bytes.writeBytes(text.getBytes(StandardCharsets.UTF_8));
        Texts.write(answers, bytes);
        answers.flush();
    }
}
