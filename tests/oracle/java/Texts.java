import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;

/** Texts in requests and answers of programs that stay: a length, and bytes of UTF-8. */
class Texts {
    static String read(DataInputStream from) throws IOException {
        return new String(from.readNBytes(from.readInt()), StandardCharsets.UTF_8);
    }

    static void write(DataOutputStream to, ByteArrayOutputStream text) throws IOException {
        to.writeInt(text.size());
        text.writeTo(to);
    }
}
