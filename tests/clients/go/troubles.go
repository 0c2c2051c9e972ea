package main

// Troubles: a record is too large for its topic, the broker refuses a batch as out of order, and of two clients that claim to be the same the younger one fences the older one.

import (
	"context"
	"strings"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"
)

// For so long the older one goes on: in five seconds it may send what it had begun.
const twinsFor = 6 * time.Second

func franzTwin(broker string) *kgo.Client {
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.ConsumerGroup("franz-twins"), kgo.ConsumeTopics("franz-twins"), kgo.InstanceID("twin"),
		kgo.HeartbeatInterval(heartbeat), kgo.WithContext(nextGeneration(false)))
	no("twin", err)
	return client
}

// Reads for some time; what fails is left to the client.
func franzPolls(clients ...*kgo.Client) {
	for over := time.Now().Add(twinsFor); time.Now().Before(over); {
		for _, client := range clients {
			ctx, cancel := context.WithTimeout(context.Background(), pollsFor)
			client.PollFetches(ctx)
			cancel()
		}
	}
}

func franzTooLarge(broker string) {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.DefaultProduceTopic("small"), kgo.ProducerBatchCompression(kgo.NoCompression()))
	no("client", err)
	check("too large", client.ProduceSync(ctx, kgo.SliceRecord(make([]byte, 5000))).FirstErr() != nil)
	_ = client.ProduceSync(ctx, kgo.SliceRecord(make([]byte, 1))).FirstErr()
	client.Close()
}

// The third batch is refused. What a transaction lacks then is aborted with it.
func franzAstray(broker string) {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	client := franzClient(broker, kgo.DefaultProduceTopic("astray"), kgo.ProducerBatchCompression(kgo.ZstdCompression()))
	for range 6 {
		_ = client.ProduceSync(ctx, kgo.StringRecord(strings.Repeat("value", 100))).FirstErr() // which is smaller when it is compressed
	}
	client.Close()
	client = franzClient(broker, kgo.DefaultProduceTopic("astray-writes"), kgo.TransactionalID("astray"))
	for range 3 {
		no("begin", client.BeginTransaction())
		var failed error
		for range 2 {
			if err := client.ProduceSync(ctx, kgo.StringRecord("value")).FirstErr(); err != nil {
				failed = err
			}
		}
		no("end", client.EndTransaction(ctx, kgo.TransactionEndTry(failed == nil)))
	}
	client.Close()
}

// Static members; the last one is alone, and leads its group as the one before did, which only went (KIP-814).
func franzTwins(broker string) {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	create(ctx, broker, "franz-twins")
	old := franzTwin(broker)
	franzPolls(old)
	young := franzTwin(broker)
	for range 2 { // the older one waits for some seconds before it joins again
		franzPolls(old, young)
	}
	old.Close()
	young.Close()
	last := franzTwin(broker)
	franzPolls(last)
	last.Close()
}

// A static member of a group of KIP-848 goes, and its partitions wait for it.
func franzStays(broker string) {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	create(ctx, broker, "franz-stays")
	assigned := make(chan struct{}, 1)
	member := franzClient(broker, kgo.ConsumerGroup("franz-stays"), kgo.ConsumeTopics("franz-stays"), kgo.InstanceID("static"), kgo.WithContext(nextGeneration(true)),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, found map[string][]int32) {
			if len(found) > 0 {
				assigned <- struct{}{}
			}
		}))
	defer member.Close()
	select {
	case <-assigned:
	case <-ctx.Done():
		no("assignment", ctx.Err())
	}
}

// A member of a share group needs longer for its records, and renews their locks (KIP-1222).
func franzRenews(broker string) {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	queue(broker, "franz-renews", 1, 5, 20)
	member := sharer(broker, "franz-renews")
	defer member.Close()
	held := member.PollFetches(ctx).Records()
	for _, status := range []kgo.AckStatus{kgo.AckRenew, kgo.AckAccept} {
		member.MarkAcks(status, held...)
		no("acknowledge", member.FlushAcks(ctx))
	}
}

// A producer that has given up is made again by its application.
func saramaAstray(broker string) {
	producer := saramaProducer(broker, saramaConfig())
	for range 6 {
		_ = saramaSend(producer, "astray", 0)
	}
	_ = producer.Close()
	config := saramaConfig()
	config.Producer.Transaction.ID = "astray"
	producer = saramaProducer(broker, config)
	for range 3 {
		if producer.BeginTxn() != nil {
			_ = producer.Close()
			producer = saramaProducer(broker, config)
			no("begin", producer.BeginTxn())
		}
		first, second := saramaSend(producer, "astray-writes", 0), saramaSend(producer, "astray-writes", 0)
		if first != nil || second != nil || producer.CommitTxn() != nil {
			_ = producer.AbortTxn()
		}
	}
	_ = producer.Close()
}

func saramaTooLarge(broker string) {
	producer := saramaProducer(broker, saramaConfig())
	for _, size := range []int{5000, 1} {
		_, _, _ = producer.SendMessage(&sarama.ProducerMessage{Topic: "small", Value: sarama.ByteEncoder(make([]byte, size))})
	}
	_ = producer.Close()
}
