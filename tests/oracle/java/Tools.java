import java.io.BufferedOutputStream;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Kafka's command-line tools one after another in one process, which starts and compiles once. A request is a number of texts:
 * the class, the standard input, and the arguments; the answer is the exit code, standard output and standard error.
 */
public class Tools {
    /** A tool wants to end its process. */
    static class Ended extends Error {
        Ended() {
            super("the tool ended", null, false, false);
        }
    }

    static Integer code;
    /** What a tool wants done at the end of its process. */
    static final List<Thread> hooks = Collections.synchronizedList(new ArrayList<>());

    static void end(int wanted) {
        if (code == null) {
            code = wanted;
        }
        throw new Ended();
    }

    public static void main(String[] none) throws Exception {
        DataInputStream requests = new DataInputStream(System.in);
        PrintStream standardOut = System.out;
        PrintStream standardErr = System.err;
        DataOutputStream answers = new DataOutputStream(new BufferedOutputStream(standardOut));
        Exit.setExitProcedure((wanted, message) -> end(wanted));
        Exit.setHaltProcedure((wanted, message) -> end(wanted));
        Exit.setShutdownHookAdder((name, hook) -> hooks.add(new Thread(hook, name)));
        while (true) {
            int count;
            try {
                count = requests.readInt();
            } catch (EOFException end) {
                Runtime.getRuntime().halt(0);
                return;
            }
            String name = Texts.read(requests);
            byte[] input = Texts.read(requests).getBytes(StandardCharsets.UTF_8);
            String[] arguments = new String[count - 2];
            for (int at = 0; at < arguments.length; at++) {
                arguments[at] = Texts.read(requests);
            }
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            ByteArrayOutputStream err = new ByteArrayOutputStream();
            System.setIn(new ByteArrayInputStream(input));
            System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
            System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
            code = null;
            try {
                Class.forName(name).getMethod("main", String[].class).invoke(null, (Object) arguments);
            } catch (InvocationTargetException thrown) {
                if (code == null) {
                    code = 1;
                    thrown.getCause().printStackTrace();
                }
            }
            for (Thread hook : hooks) {
                hook.start();
            }
            for (Thread hook : hooks) {
                hook.join(30_000);
            }
            hooks.clear();
            System.out.flush();
            System.err.flush();
            System.setOut(standardOut);
            System.setErr(standardErr);
            answers.writeInt(code == null ? 0 : code);
            Texts.write(answers, out);
            Texts.write(answers, err);
            answers.flush();
        }
    }
}
