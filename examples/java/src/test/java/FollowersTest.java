import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A producer and followers that are late. OTTLA_BOOTSTRAP_SERVERS and OTTLA_LAB say where the broker is. */
class FollowersTest {
  private static final HttpClient HTTP = HttpClient.newHttpClient();

  /** Asks the broker's HTTP API, and returns its reply. */
  private static String lab(String method, String path, String body) throws Exception {
    HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(System.getenv("OTTLA_LAB") + "/v1/" + path))
        .header("Content-Type", "application/json")
        .method(method, HttpRequest.BodyPublishers.ofString(body));
    String token = System.getenv("OTTLA_LAB_TOKEN");
    if (token != null) request.header("Authorization", "Bearer " + token);
    HttpResponse<String> reply = HTTP.send(request.build(), HttpResponse.BodyHandlers.ofString());
    assertEquals(200, reply.statusCode(), reply.body());
    return reply.body();
  }

  /** The number that a key has in a reply; an application has a JSON library for that. */
  private static long number(String reply, String key) {
    Matcher found = Pattern.compile("\"" + key + "\": (-?\\d+)").matcher(reply);
    assertTrue(found.find(), reply);
    return Long.parseLong(found.group(1));
  }

  private static long logEndOffset(String topic) throws Exception {
    return number(lab("GET", "topics/" + topic, ""), "log_end_offset");
  }

  @Test
  @Timeout(60)
  void aProducerWaitsForFollowersAndTriesAgain() throws Exception {
    String topic = "java-" + UUID.randomUUID();
    String target = "\"topic\": \"" + topic + "\"";
    lab("POST", "seed", "{\"topics\": [{\"name\": \"" + topic + "\"}]}");
    Map<String, Object> settings = Map.of("bootstrap.servers", System.getenv("OTTLA_BOOTSTRAP_SERVERS"), "acks", "all");
    try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
      lab("POST", "hold", "{" + target + "}");
      var sent = producer.send(new ProducerRecord<>(topic, "first"));
      while (logEndOffset(topic) < 1) Thread.sleep(10);
      assertFalse(sent.isDone(), "the record is in the log, and the followers do not have it");
      lab("POST", "release", "{" + target + "}");
      assertEquals(0, sent.get(30, TimeUnit.SECONDS).offset());

      String action = "\"action\": {\"kind\": \"error\", \"error\": \"NOT_LEADER_OR_FOLLOWER\"}";
      String fault = lab("POST", "faults", "{\"api\": \"Produce\", \"times\": 1, " + target + ", " + action + "}");
      assertEquals(1, producer.send(new ProducerRecord<>(topic, "second")).get(30, TimeUnit.SECONDS).offset());
      assertEquals(1, number(lab("GET", "faults/" + number(fault, "number"), ""), "applied"));
      lab("DELETE", "faults/" + number(fault, "number"), "");
    }
  }
}
