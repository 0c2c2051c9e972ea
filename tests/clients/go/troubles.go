package main

// Troubles: a record is too large for its topic, and of two clients that claim to be the same the younger one fences the older one.

import (
	"context"
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

// Static members; the last one is alone, and leads its group as the one before did, which only went (KIP-814).
func franzTwins(broker string) {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	create(ctx, broker, "franz-twins")
	old := franzTwin(broker)
	franzPolls(old)
	young := franzTwin(broker)
	franzPolls(old, young)
	old.Close()
	young.Close()
	last := franzTwin(broker)
	franzPolls(last)
	last.Close()
}

func saramaTooLarge(broker string) {
	producer := saramaProducer(broker, saramaConfig())
	for _, size := range []int{5000, 1} {
		_, _, _ = producer.SendMessage(&sarama.ProducerMessage{Topic: "small", Value: sarama.ByteEncoder(make([]byte, size))})
	}
	_ = producer.Close()
}
