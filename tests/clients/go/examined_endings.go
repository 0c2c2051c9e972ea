package main

// The Go clients in the examination of errors that end clients: see examined.go.

import (
	"context"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	commitsEvery = 500 * time.Millisecond
	endsIn       = 60 * time.Second // what a producer waits for the end of a transaction
)

// Transactions, until a producer can neither commit nor abort.
func franzEndingWrites(broker string, steps <-chan int) {
	producer := franzClient(broker, kgo.TransactionalID("ending"))
	defer producer.Close()
	end := func(how kgo.TransactionEndTry) error {
		ctx, cancel := context.WithTimeout(context.Background(), endsIn)
		defer cancel()
		return producer.EndTransaction(ctx, how)
	}
	for range steps {
		if producer.BeginTransaction() != nil {
			return
		}
		err := franzSend(producer, "written", 0)
		if err == nil {
			err = end(kgo.TryCommit)
		}
		if err != nil && end(kgo.TryAbort) != nil {
			return
		}
	}
}

// A member, which commits by itself. What goes wrong is left to the client, which joins again by itself.
func franzEndingMember(broker, group string, next bool, steps <-chan int, more ...kgo.Opt) {
	producer := franzClient(broker)
	no("produce", franzSend(producer, "shared", 0))
	member := franzClient(broker, append(more, kgo.ConsumerGroup(group), kgo.ConsumeTopics("shared"), kgo.WithContext(nextGeneration(next)),
		kgo.HeartbeatInterval(heartbeat), kgo.SessionTimeout(session), kgo.AutoCommitInterval(commitsEvery))...)
	for range steps {
		no("produce", franzSend(producer, "shared", 0))
		franzReads(member)
	}
	member.Close()
	producer.Close()
}

// Transactions, until a producer can neither commit nor abort.
func saramaEndingWrites(broker string, steps <-chan int) {
	config := saramaConfig()
	config.Producer.Transaction.ID = "ending"
	producer := saramaProducer(broker, config)
	for range steps {
		if producer.BeginTxn() != nil {
			break
		}
		err := saramaSend(producer, "written", 0)
		if err == nil {
			err = producer.CommitTxn()
		}
		if err != nil && producer.AbortTxn() != nil {
			break
		}
	}
	_ = producer.Close()
}

// A static member, which commits by itself. What it hears of is left to it.
func saramaEndingStatic(broker string, steps <-chan int) {
	producer := saramaProducer(broker, saramaConfig())
	saramaSends(producer, "shared", 0)
	member := saramaComes(broker, "ending", func(config *sarama.Config) {
		config.Consumer.Group.InstanceId = "ending"
		config.Consumer.Offsets.AutoCommit.Interval = commitsEvery
	})
	for range steps {
		saramaSends(producer, "shared", 0)
		time.Sleep(pollsFor)
	}
	member.leave()
	_ = producer.Close()
}
