// A producer and followers that are late, with franz-go. OTTLA_BOOTSTRAP_SERVERS and OTTLA_LAB say where the broker is.
package example

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

type object = map[string]any

// lab asks the broker's HTTP API, and returns its reply.
func lab(t *testing.T, method, path string, body object) object {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequest(method, os.Getenv("OTTLA_LAB")+"/v1/"+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if token := os.Getenv("OTTLA_LAB_TOKEN"); token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	found := object{}
	if err := json.NewDecoder(reply.Body).Decode(&found); err != nil || reply.StatusCode != http.StatusOK {
		t.Fatal(method, path, reply.Status, found["error"], err)
	}
	return found
}

func logEndOffset(t *testing.T, topic string) float64 {
	partition := lab(t, "GET", "topics/"+topic, nil)["partitions"].([]any)[0].(object)
	return partition["log_end_offset"].(float64)
}

func TestAProducerWaitsForFollowersAndTriesAgain(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	topic := fmt.Sprintf("go-%d", time.Now().UnixNano())
	lab(t, "POST", "seed", object{"topics": []object{{"name": topic}}})
	client, err := kgo.NewClient(kgo.SeedBrokers(os.Getenv("OTTLA_BOOTSTRAP_SERVERS")), kgo.DefaultProduceTopic(topic))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()

	lab(t, "POST", "hold", object{"topic": topic})
	sent := make(chan error, 1)
	client.Produce(ctx, kgo.StringRecord("first"), func(_ *kgo.Record, err error) { sent <- err })
	for logEndOffset(t, topic) < 1 {
		time.Sleep(10 * time.Millisecond)
	}
	if len(sent) > 0 {
		t.Fatal("the followers do not have the record")
	}
	lab(t, "POST", "release", object{"topic": topic})
	if err := <-sent; err != nil {
		t.Fatal(err)
	}

	action := object{"kind": "error", "error": "NOT_LEADER_OR_FOLLOWER"}
	fault := lab(t, "POST", "faults", object{"api": "Produce", "topic": topic, "times": 1, "action": action})
	number := fmt.Sprint(fault["number"])
	if err := client.ProduceSync(ctx, kgo.StringRecord("second")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if found := lab(t, "GET", "faults/"+number, nil); found["applied"] != 1.0 || logEndOffset(t, topic) != 2 {
		t.Fatal("the producer did not try again", found)
	}
	lab(t, "DELETE", "faults/"+number, nil)
}
