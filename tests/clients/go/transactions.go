// Transactions: franz-go's consume-transform-produce sessions, and sarama's transactional producer.
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Every committed value of a topic, by value. With control records, so that a reader comes to the end of each partition.
func committed(ctx context.Context, broker, topic string) map[string]int {
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeTopics(topic),
		kgo.KeepControlRecords(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	no("reader", err)
	defer client.Close()
	ends, err := kadm.NewClient(client).ListCommittedOffsets(ctx, topic)
	no("ends", err)
	seen, at := map[string]int{}, map[int32]int64{}
	for {
		behind := false
		ends.Each(func(o kadm.ListedOffset) { behind = behind || at[o.Partition] < o.Offset })
		if !behind {
			return seen
		}
		fetches := client.PollFetches(ctx)
		no("fetch", fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				seen[string(r.Value)]++
			}
			at[r.Partition] = r.Offset + 1
		})
	}
}

func create(ctx context.Context, broker, topic string) {
	client, err := kgo.NewClient(kgo.SeedBrokers(broker))
	no("client", err)
	defer client.Close()
	_, err = kadm.NewClient(client).CreateTopic(ctx, 3, 1, nil, topic)
	no("create "+topic, err)
}

// Each record is read, changed and written in a transaction with its offset; every third transaction is aborted and done again.
func franzSessions(broker string) {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	fill(broker, "txn-in", records)
	create(ctx, broker, "txn-out")
	session, err := kgo.NewGroupTransactSession(kgo.SeedBrokers(broker), kgo.TransactionalID("franz-txn"), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumerGroup("franz-txn"), kgo.ConsumeTopics("txn-in"), kgo.RequireStableFetchOffsets(), kgo.DefaultProduceTopic("txn-out"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.HeartbeatInterval(100*time.Millisecond))
	no("session", err)
	done := 0
	for turn := 0; done < records; turn++ {
		fetches := session.PollRecords(ctx, 20)
		no("poll", fetches.Err())
		if fetches.NumRecords() == 0 {
			continue
		}
		no("begin", session.Begin())
		fetches.EachRecord(func(r *kgo.Record) {
			session.Produce(ctx, &kgo.Record{Value: []byte("x" + string(r.Value))}, nil)
		})
		ok, err := session.End(ctx, kgo.TransactionEndTry(turn%3 != 0))
		no("end", err)
		if ok {
			done += fetches.NumRecords()
		}
	}
	session.Close()
	seen := committed(ctx, broker, "txn-out")
	check("each once", len(seen) == records, len(seen))
	for value, count := range seen {
		check("once", count == 1, value, count)
	}
}

// A second producer of the same id fences the first.
func franzFencing(broker string) {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	create(ctx, broker, "txn-fence")
	producer := func() *kgo.Client {
		client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.TransactionalID("franz-fence"), kgo.DefaultProduceTopic("txn-fence"))
		no("producer", err)
		return client
	}
	old, young := producer(), producer()
	no("begin", old.BeginTransaction())
	no("old", old.ProduceSync(ctx, kgo.StringRecord("old")).FirstErr())
	no("begin", young.BeginTransaction())
	no("young", young.ProduceSync(ctx, kgo.StringRecord("young")).FirstErr())
	no("commit", young.EndTransaction(ctx, kgo.TryCommit))
	err := old.EndTransaction(ctx, kgo.TryCommit)
	check("fenced", errors.Is(err, kerr.ProducerFenced) || errors.Is(err, kerr.InvalidProducerEpoch) || errors.Is(err, kerr.InvalidTxnState), err)
	old.Close()
	young.Close()
	seen := committed(ctx, broker, "txn-fence")
	check("only the young one's", len(seen) == 1 && seen["young"] == 1, seen)
}

func saramaTransactions(broker string) {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	create(ctx, broker, "sarama-txn")
	config := sarama.NewConfig()
	config.Version = sarama.V3_6_0_0
	config.Producer.Idempotent = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Return.Successes = true
	config.Producer.Transaction.ID = "sarama-txn"
	config.Net.MaxOpenRequests = 1
	producer, err := sarama.NewSyncProducer([]string{broker}, config)
	no("sarama producer", err)
	for turn := 0; turn < 10; turn++ {
		no("sarama begin", producer.BeginTxn())
		for n := 0; n < 5; n++ {
			_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: "sarama-txn", Value: sarama.StringEncoder(fmt.Sprint(turn, "-", n))})
			no("sarama send", err)
		}
		no("sarama offsets", producer.AddOffsetsToTxn(map[string][]*sarama.PartitionOffsetMetadata{
			"sarama-txn": {{Partition: 0, Offset: int64(turn)}}}, "sarama-group"))
		if turn%2 == 0 {
			no("sarama commit", producer.CommitTxn())
		} else {
			no("sarama abort", producer.AbortTxn())
		}
	}
	no("sarama close", producer.Close())
	seen := committed(ctx, broker, "sarama-txn")
	check("sarama committed", len(seen) == 25, len(seen))
	client, err := kgo.NewClient(kgo.SeedBrokers(broker))
	no("client", err)
	defer client.Close()
	offsets, err := kadm.NewClient(client).FetchOffsets(ctx, "sarama-group")
	no("sarama offsets", err)
	found, _ := offsets.Lookup("sarama-txn", 0)
	check("sarama offset", found.At == 8, found)
}
