package main

// sarama in examinations of the verdict: see examined.go.

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
)

func saramaWorks() map[string]work {
	return map[string]work{
		"basic": saramaCompressed, "idempotence": saramaTogether, "network": saramaPlain, "truncation": saramaReading,
		"connections":  saramaSeldom,
		"transactions": saramaWrites, "classic-group": saramaMembers, "login": saramaLogin,
		"ending-writes": saramaEndingWrites, "ending-sends": saramaTogether, "ending-static": saramaEndingStatic,
	}
}

func saramaConfig() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.V3_6_0_0
	config.Producer.Idempotent, config.Producer.RequiredAcks = true, sarama.WaitForAll
	config.Producer.Return.Successes = true
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.Retry.Max = 20
	config.Net.MaxOpenRequests = 1
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Return.Errors = true
	config.Consumer.MaxWaitTime = 50 * time.Millisecond
	return config
}

// What sarama gives up, its application does again.
func again[T any](make func() (T, error)) T {
	for {
		made, err := make()
		if err == nil {
			return made
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func saramaProducer(broker string, config *sarama.Config) sarama.SyncProducer {
	return again(func() (sarama.SyncProducer, error) { return sarama.NewSyncProducer([]string{broker}, config) })
}

func saramaSend(producer sarama.SyncProducer, topic string, partition int) error {
	_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Partition: int32(partition), Value: sarama.StringEncoder("value")})
	return err
}

// Sends a record until it is there.
func saramaSends(producer sarama.SyncProducer, topic string, partition int) {
	again(func() (bool, error) { return true, saramaSend(producer, topic, partition) })
}

// Takes messages as they come, and tells of them. Returns whether more can come.
func saramaTakes(messages <-chan *sarama.ConsumerMessage, seen func(*sarama.ConsumerMessage)) bool {
	for over := time.After(pollsFor); ; {
		select {
		case message := <-messages:
			if message == nil {
				return false
			}
			seen(message)
		case <-over:
			return true
		}
	}
}

// Reads a partition from its beginning; errors are left to sarama, which goes on by itself.
func saramaOpens(consumer sarama.Consumer, topic string) sarama.PartitionConsumer {
	partition := again(func() (sarama.PartitionConsumer, error) { return consumer.ConsumePartition(topic, 0, 0) })
	go func() {
		for range partition.Errors() {
		}
	}()
	return partition
}

// A producer, and a consumer that chooses its partition and commits.
func saramaPlain(broker string, steps <-chan int) {
	saramaPlainWith(broker, steps, saramaConfig)
}

func saramaCompressed(broker string, steps <-chan int) {
	saramaPlainWith(broker, steps, func() *sarama.Config {
		config := saramaConfig()
		config.Producer.Compression = sarama.CompressionZSTD
		return config
	})
}

// Records that do not wait for each other.
func saramaTogether(broker string, steps <-chan int) {
	producer := saramaProducer(broker, saramaConfig())
	for range steps {
		var messages []*sarama.ProducerMessage
		for range together {
			messages = append(messages, &sarama.ProducerMessage{Topic: "plain", Partition: 0, Value: sarama.StringEncoder("value")})
		}
		_ = producer.SendMessages(messages) // what it gives up is lost
	}
	_ = producer.Close()
}

// A record now and then.
func saramaSeldom(broker string, steps <-chan int) {
	producer := saramaProducer(broker, saramaConfig())
	for range steps {
		_ = saramaSend(producer, "plain", 0) // what it gives up is lost
		time.Sleep(seldom)
	}
	_ = producer.Close()
}

func saramaLogin(broker string, steps <-chan int) {
	saramaPlainWith(broker, steps, func() *sarama.Config {
		config := saramaConfig()
		config.Net.SASL.Enable, config.Net.SASL.Mechanism = true, sarama.SASLTypePlaintext
		config.Net.SASL.User, config.Net.SASL.Password = examinedUser, examinedPassword
		return config
	})
}

func saramaPlainWith(broker string, steps <-chan int, config func() *sarama.Config) {
	producer := saramaProducer(broker, config())
	saramaSends(producer, "plain", 0)
	client := again(func() (sarama.Client, error) { return sarama.NewClient([]string{broker}, config()) })
	consumer := again(func() (sarama.Consumer, error) { return sarama.NewConsumerFromClient(client) })
	partition := saramaOpens(consumer, "plain")
	offsets := again(func() (sarama.OffsetManager, error) { return sarama.NewOffsetManagerFromClient("plain", client) })
	mine := again(func() (sarama.PartitionOffsetManager, error) { return offsets.ManagePartition("plain", 0) })
	go func() {
		for range mine.Errors() {
		}
	}()
	for range steps {
		saramaSends(producer, "plain", 0)
		if !saramaTakes(partition.Messages(), func(message *sarama.ConsumerMessage) { mine.MarkOffset(message.Offset+1, "") }) {
			partition = saramaOpens(consumer, "plain") // sarama gives a partition up whose offset is out of range
		}
		offsets.Commit()
		// What fails is asked again at the next step.
		_, _ = client.GetOffset("plain", 0, sarama.OffsetNewest)
		_ = client.RefreshMetadata()
	}
	_ = partition.Close()
	_ = mine.Close()
	_ = offsets.Close()
	_ = consumer.Close()
	_ = client.Close()
	_ = producer.Close()
}

// A consumer that chooses its partition, and only reads.
func saramaReading(broker string, steps <-chan int) {
	client := again(func() (sarama.Client, error) { return sarama.NewClient([]string{broker}, saramaConfig()) })
	consumer := again(func() (sarama.Consumer, error) { return sarama.NewConsumerFromClient(client) })
	partition := saramaOpens(consumer, "read")
	for range steps {
		if !saramaTakes(partition.Messages(), func(*sarama.ConsumerMessage) {}) {
			partition = saramaOpens(consumer, "read")
		}
	}
	_ = partition.Close()
	_ = consumer.Close()
	_ = client.Close()
}

func saramaWrites(broker string, steps <-chan int) {
	config := saramaConfig()
	config.Producer.Transaction.ID = "transactions"
	producer := saramaProducer(broker, config)
	for range steps {
		if err := producer.BeginTxn(); err != nil {
			_ = producer.Close() // it is in a fatal state
			producer = saramaProducer(broker, config)
			continue
		}
		offset := map[string][]*sarama.PartitionOffsetMetadata{"written": {{Partition: 0, Offset: 1}}}
		err := errors.Join(saramaSend(producer, "written", 0), saramaSend(producer, "written", 0), producer.AddOffsetsToTxn(offset, "group"))
		if err == nil {
			err = producer.CommitTxn()
		}
		for err != nil && producer.TxnStatus()&sarama.ProducerTxnFlagInError != 0 && producer.TxnStatus()&sarama.ProducerTxnFlagFatalError == 0 {
			err = producer.AbortTxn()
		}
	}
	_ = producer.Close()
}

// A member of a group, which reads and commits until it is told to go.
type saramaMember struct {
	group sarama.ConsumerGroup
	goes  context.CancelFunc
	gone  sync.WaitGroup
	has   atomic.Bool // partitions
}

func (m *saramaMember) Setup(session sarama.ConsumerGroupSession) error {
	m.has.Store(len(session.Claims()) > 0)
	return nil
}

func (m *saramaMember) Cleanup(sarama.ConsumerGroupSession) error {
	m.has.Store(false)
	return nil
}

func (m *saramaMember) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for session.Context().Err() == nil {
		saramaTakes(claim.Messages(), func(message *sarama.ConsumerMessage) { session.MarkMessage(message, "") })
		session.Commit()
	}
	return nil
}

func (m *saramaMember) leave() {
	m.goes()
	m.gone.Wait()
}

func saramaComes(broker, name string, more func(*sarama.Config)) *saramaMember {
	config := saramaConfig()
	config.Consumer.Group.Heartbeat.Interval, config.Consumer.Group.Session.Timeout = heartbeat, session
	more(config)
	group := again(func() (sarama.ConsumerGroup, error) {
		return sarama.NewConsumerGroup([]string{broker}, name, config)
	})
	ctx, goes := context.WithCancel(context.Background())
	member := &saramaMember{group: group, goes: goes}
	go func() {
		for range group.Errors() {
		}
	}()
	member.gone.Add(1)
	go func() {
		defer member.gone.Done()
		for ctx.Err() == nil {
			err := group.Consume(ctx, []string{"shared"}, member)
			if errors.Is(err, sarama.ErrFencedInstancedId) {
				break
			} else if err != nil {
				time.Sleep(pollsFor)
			}
		}
		_ = group.Close()
	}()
	return member
}

// Two members; the second one goes and comes again. A static member of another group does so in the end.
func saramaMembers(broker string, steps <-chan int) {
	producer := saramaProducer(broker, saramaConfig())
	saramaSends(producer, "shared", 0)
	comes := func() *saramaMember { return saramaComes(broker, "members", func(*sarama.Config) {}) }
	members := []*saramaMember{comes()}
	for n := range steps {
		moves := n%churn == 0
		for _, member := range members {
			moves = moves && member.has.Load()
		}
		if moves && len(members) == 2 {
			members[1].leave()
			members = members[:1]
		} else if moves {
			members = append(members, comes())
		}
		saramaSends(producer, "shared", n%2)
		time.Sleep(pollsFor)
	}
	for _, member := range members {
		member.leave()
	}
	for range 2 {
		member := saramaComes(broker, static, func(config *sarama.Config) { config.Consumer.Group.InstanceId = static })
		for !member.has.Load() {
			time.Sleep(pollsFor)
		}
		member.leave()
	}
	_ = producer.Close()
}
