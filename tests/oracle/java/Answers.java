import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;

/** Answers each line of JSON with a line of words (`recorded_cases.words`). */
public class Answers {
    interface Asked {
        String answer(JsonNode one) throws Exception;
    }

    static void print(Asked asked) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println("answer " + asked.answer(mapper.readTree(line)));
        }
    }
}
