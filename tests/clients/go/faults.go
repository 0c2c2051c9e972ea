package main

// Producers and consumers that meet faults: each record is sent by itself, and everything that arrives is printed.

import (
	"context"
	"fmt"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"
)

const faultsTimeout = 2 * time.Second

func franzFaults(what, broker, topic, group string, count int) {
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	options := []kgo.Opt{
		kgo.SeedBrokers(broker), kgo.RequestTimeoutOverhead(faultsTimeout), kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.RetryBackoffFn(func(int) time.Duration { return 100 * time.Millisecond }),
	}
	if what == "produce" {
		client, err := kgo.NewClient(append(options, kgo.DefaultProduceTopic(topic))...)
		no("client", err)
		defer client.Close()
		for n := 0; n < count; n++ {
			err := client.ProduceSync(ctx, kgo.StringRecord(fmt.Sprintf("v%d", n))).FirstErr()
			no("produce", err)
		}
		return
	}
	client, err := kgo.NewClient(append(options, kgo.ConsumeTopics(topic), kgo.ConsumerGroup(group),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(), kgo.FetchMaxWait(500*time.Millisecond))...)
	no("client", err)
	defer client.Close()
	for seen := 0; seen < count; {
		fetches := client.PollFetches(ctx)
		no("poll", ctx.Err())
		fetches.EachError(func(_ string, _ int32, err error) { fmt.Println("error", err) })
		fetches.EachRecord(func(record *kgo.Record) {
			fmt.Println("value", string(record.Value))
			seen++
		})
	}
	no("commit", client.CommitUncommittedOffsets(ctx))
}

type faultsHandler struct {
	count int
	seen  map[int64]bool
	done  context.CancelFunc
}

func (h *faultsHandler) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (h *faultsHandler) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (h *faultsHandler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, more := <-claim.Messages():
			if !more {
				return nil
			}
			if !h.seen[message.Offset] { // a session that begins again reads what was not committed
				h.seen[message.Offset] = true
				fmt.Println("value", string(message.Value))
			}
			session.MarkMessage(message, "")
			if len(h.seen) == h.count {
				session.Commit()
				h.done()
				return nil
			}
		case <-session.Context().Done():
			return nil
		}
	}
}

func saramaFaults(what, broker, topic, group string, count int) {
	config := sarama.NewConfig()
	config.Version = sarama.V2_8_0_0
	config.Net.ReadTimeout, config.Net.MaxOpenRequests = faultsTimeout, 1
	config.Metadata.Retry.Backoff = 100 * time.Millisecond
	if what == "produce" {
		config.Producer.Idempotent, config.Producer.RequiredAcks = true, sarama.WaitForAll
		config.Producer.Return.Successes = true
		config.Producer.Retry.Max, config.Producer.Retry.Backoff = 20, 100*time.Millisecond
		producer, err := sarama.NewSyncProducer([]string{broker}, config)
		no("producer", err)
		for n := 0; n < count; n++ {
			_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder(fmt.Sprintf("v%d", n))})
			no("produce", err)
		}
		no("close", producer.Close())
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	config.Consumer.Offsets.Initial, config.Consumer.Offsets.AutoCommit.Enable = sarama.OffsetOldest, false
	config.Consumer.Return.Errors, config.Consumer.Retry.Backoff = true, 100*time.Millisecond
	config.Consumer.Group.Session.Timeout = 10 * time.Second
	config.Consumer.Group.Heartbeat.Interval = 500 * time.Millisecond
	finished, done := context.WithCancel(ctx)
	defer done()
	handler := &faultsHandler{count: count, seen: map[int64]bool{}, done: done}
	for finished.Err() == nil {
		members, err := sarama.NewConsumerGroup([]string{broker}, group, config)
		if err != nil {
			fmt.Println("error", err)
			time.Sleep(100 * time.Millisecond)
			continue
		}
		go func() {
			for err := range members.Errors() {
				fmt.Println("error", err)
			}
		}()
		for finished.Err() == nil {
			if err := members.Consume(finished, []string{topic}, handler); err != nil {
				fmt.Println("error", err)
				break
			}
		}
		members.Close()
	}
	no("in time", ctx.Err())
}
