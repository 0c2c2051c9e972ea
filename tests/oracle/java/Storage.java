import java.io.BufferedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import kafka.tools.StorageTool;

/**
 * Runs Kafka's StorageTool again and again in one process. A request is the number of arguments and these; the answer is the exit
 * code, standard output and standard error.
 */
public class Storage {
    public static void main(String[] none) throws Exception {
        DataInputStream requests = new DataInputStream(System.in);
        DataOutputStream answers = new DataOutputStream(new BufferedOutputStream(System.out));
        System.setOut(System.err);
        while (true) {
            int count;
            try {
                count = requests.readInt();
            } catch (EOFException end) {
                return;
            }
            String[] arguments = new String[count];
            for (int at = 0; at < count; at++) {
                arguments[at] = Texts.read(requests);
            }
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            ByteArrayOutputStream error = new ByteArrayOutputStream();
            int code = 1;
            try {
                code = StorageTool.execute(arguments, new PrintStream(out, true, StandardCharsets.UTF_8));
            } catch (Exception thrown) {
                thrown.printStackTrace(new PrintStream(error, true, StandardCharsets.UTF_8));
            }
            answers.writeInt(code);
            Texts.write(answers, out);
            Texts.write(answers, error);
            answers.flush();
        }
    }
}
