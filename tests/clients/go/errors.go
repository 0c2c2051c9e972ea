package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Clients that are told what to do: a line is an API and a name that is new; the answer is `heard` and the error code that the client
// raises, 0 for none, or the words of an error that is not Kafka's.

const (
	errorsTopic = "errors"
	errorsGroup = "errors-group"
)

type does map[string]func(name string) error

func heard(err error) string {
	var ofKafka *kerr.Error
	var ofSarama sarama.KError
	var ofTopic *sarama.TopicError
	var ofPartition *sarama.TopicPartitionError
	var ofConfig *sarama.DescribeConfigError
	var ofSetting *sarama.AlterConfigError
	switch {
	case err == nil:
		return "0"
	case errors.As(err, &ofKafka):
		return fmt.Sprint(ofKafka.Code)
	case errors.As(err, &ofTopic):
		return fmt.Sprint(int16(ofTopic.Err))
	case errors.As(err, &ofPartition):
		return fmt.Sprint(int16(ofPartition.Err))
	case errors.As(err, &ofConfig):
		return fmt.Sprint(int16(ofConfig.Err))
	case errors.As(err, &ofSetting):
		return fmt.Sprint(int16(ofSetting.Err))
	case errors.As(err, &ofSarama):
		return fmt.Sprint(int16(ofSarama))
	}
	return strings.ReplaceAll(err.Error(), "\n", " ")
}

func obey(all does) {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		fmt.Println("heard", heard(all[words[0]](words[1])))
	}
}

func franzCodes(broker string, at login) {
	options := []kgo.Opt{kgo.SeedBrokers(broker), kgo.MetadataMinAge(10 * time.Millisecond), kgo.RetryBackoffFn(func(int) time.Duration { return 10 * time.Millisecond }),
		kgo.DefaultProduceTopic(errorsTopic), kgo.RecordPartitioner(kgo.ManualPartitioner())}
	client, err := kgo.NewClient(options...)
	if err != nil {
		panic(err)
	}
	admin, ctx := kadm.NewClient(client), context.Background()
	partition := kadm.Offsets{}
	partition.Add(kadm.Offset{Topic: errorsTopic, Partition: 0, At: 1, LeaderEpoch: -1})
	set := kadm.TopicsSet{}
	set.Add(errorsTopic, 0)
	value := "1000000"
	settings := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: &value}}
	create := func(name string) error { _, err := admin.CreateTopic(ctx, 1, 1, nil, name); return err }
	obey(merged(franzClusterCodes(client, options), franzAdminCodes(client, options), franzGroupCodes(client, options), franzLoginCodes(at, options), does{
		"prepare":      create,
		"CreateTopics": create,
		"DeleteTopics": func(name string) error { _, err := admin.DeleteTopic(ctx, name); return err },
		"CreatePartitions": func(name string) error {
			found, err := admin.CreatePartitions(ctx, 1, name)
			return first(err, found.Error())
		},
		"Metadata": func(string) error {
			asking, err := kgo.NewClient(options...) // which has no metadata yet
			if err != nil {
				return err
			}
			defer asking.Close()
			found, err := kadm.NewClient(asking).ListTopics(ctx, errorsTopic)
			return first(err, found.Error())
		},
		"DescribeConfigs": func(string) error {
			found, err := admin.DescribeTopicConfigs(ctx, errorsTopic)
			for _, one := range found {
				err = first(err, one.Err)
			}
			return err
		},
		"IncrementalAlterConfigs": func(string) error {
			found, err := admin.AlterTopicConfigs(ctx, settings, errorsTopic)
			for _, one := range found {
				err = first(err, one.Err)
			}
			return err
		},
		"DescribeLogDirs": func(string) error {
			found, err := admin.DescribeAllLogDirs(ctx, nil)
			for _, dirs := range found {
				err = first(err, dirs.Error())
			}
			return err
		},
		"DeleteRecords": func(string) error {
			asked := kadm.Offsets{}
			asked.Add(kadm.Offset{Topic: errorsTopic, Partition: 0, At: 0, LeaderEpoch: -1})
			found, err := admin.DeleteRecords(ctx, asked)
			return first(err, found.Error())
		},
		"ListOffsets": func(string) error {
			found, err := admin.ListEndOffsets(ctx, errorsTopic)
			return first(err, found.Error())
		},
		"ListGroups": func(string) error { _, err := admin.ListGroups(ctx); return err },
		"DescribeGroups": func(string) error {
			found, err := admin.DescribeGroups(ctx, errorsGroup)
			return first(err, found.Error())
		},
		"DeleteGroups": func(string) error {
			found, err := admin.DeleteGroups(ctx, "no-group")
			return first(err, found.Error())
		},
		"OffsetCommit": func(string) error {
			found, err := admin.CommitOffsets(ctx, errorsGroup, partition)
			return first(err, found.Error())
		},
		"OffsetFetch": func(string) error {
			found, err := admin.FetchOffsets(ctx, errorsGroup)
			return first(err, found.Error())
		},
		"OffsetDelete": func(string) error {
			found, err := admin.DeleteOffsets(ctx, errorsGroup, set)
			return first(err, found.Error())
		},
		"DescribeTransactions": func(string) error {
			found, err := admin.DescribeTransactions(ctx, "none")
			for _, one := range found {
				err = first(err, one.Err)
			}
			return err
		},
		"ListTransactions": func(string) error { _, err := admin.ListTransactions(ctx, nil, nil); return err },
		"DescribeProducers": func(string) error {
			found, err := admin.DescribeProducers(ctx, set)
			for _, topic := range found {
				for _, one := range topic.Partitions {
					err = first(err, one.Err)
				}
			}
			return err
		},
		"DescribeClientQuotas": func(string) error { _, err := admin.DescribeClientQuotas(ctx, false, nil); return err },
		"Produce": func(string) error {
			producer, err := kgo.NewClient(append(options, kgo.RecordDeliveryTimeout(time.Minute), kgo.DisableIdempotentWrite())...)
			if err != nil {
				return err
			}
			defer producer.Close()
			return producer.ProduceSync(ctx, &kgo.Record{Value: []byte("x"), Partition: 0}).FirstErr()
		},
		"Fetch": func(string) error {
			start := map[string]map[int32]kgo.Offset{errorsTopic: {0: kgo.NewOffset().At(0)}}
			return franzPoll(ctx, append(options, kgo.ConsumePartitions(start), kgo.ConsumeResetOffset(kgo.NoResetOffset())))
		},
		"JoinGroup": func(name string) error {
			return franzPoll(ctx, append(options, kgo.ConsumerGroup(name), kgo.ConsumeTopics(errorsTopic)))
		},
		"SyncGroup": func(name string) error {
			return franzPoll(ctx, append(options, kgo.ConsumerGroup(name), kgo.ConsumeTopics(errorsTopic), kgo.SessionTimeout(sessionTime), kgo.HeartbeatInterval(50*time.Millisecond)))
		},
		"InitProducerId": func(name string) error { return franzTransact(ctx, append(options, kgo.TransactionalID(name))) },
		"EndTxn":         func(name string) error { return franzTransact(ctx, append(options, kgo.TransactionalID(name))) },
	}))
}

// franzTransact writes a record in a transaction.
func franzTransact(ctx context.Context, options []kgo.Opt) error {
	producer, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer producer.Close()
	within, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := producer.BeginTransaction(); err != nil {
		return err
	}
	if err := producer.ProduceSync(within, &kgo.Record{Topic: "transactions", Value: []byte("x")}).FirstErr(); err != nil {
		return err
	}
	return producer.EndTransaction(within, kgo.TryCommit)
}

func franzPoll(ctx context.Context, options []kgo.Opt) error {
	consumer, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer consumer.Close()
	_, err = franzRecords(ctx, consumer)
	return err
}

// franzRecords waits for records, or an error.
func franzRecords(ctx context.Context, consumer *kgo.Client) ([]*kgo.Record, error) {
	within, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		fetches := consumer.PollFetches(within)
		for _, one := range fetches.Errors() {
			return nil, one.Err
		}
		if fetches.NumRecords() > 0 {
			return fetches.Records(), nil
		}
	}
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func saramaCodes(broker string, at login) {
	config := sarama.NewConfig()
	config.Version = sarama.V3_9_0_0
	config.Admin.Retry.Backoff = 10 * time.Millisecond
	config.Metadata.Retry.Backoff = 10 * time.Millisecond
	config.Producer.Retry.Backoff = 10 * time.Millisecond
	config.Consumer.Retry.Backoff = 10 * time.Millisecond
	config.Consumer.Group.Rebalance.Retry.Backoff = 10 * time.Millisecond
	config.Producer.Return.Successes = true
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Consumer.Return.Errors = true
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	admin, err := sarama.NewClusterAdmin([]string{broker}, config)
	if err != nil {
		panic(err)
	}
	value := "1000000"
	detail := &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 1}
	create := func(name string) error { return admin.CreateTopic(name, detail, false) }
	obey(merged(saramaLoginCodes(broker, at, config), saramaGroupCodes(broker, config), saramaAdminCodes(broker, admin, config), does{
		"prepare":          create,
		"CreateTopics":     create,
		"DeleteTopics":     admin.DeleteTopic,
		"CreatePartitions": func(name string) error { return admin.CreatePartitions(name, 2, nil, false) },
		"Metadata": func(string) error {
			found, err := admin.DescribeTopics([]string{errorsTopic})
			for _, one := range found {
				if one.Err != sarama.ErrNoError {
					err = first(err, one.Err)
				}
				for _, partition := range one.Partitions {
					if partition.Err != sarama.ErrNoError {
						err = first(err, partition.Err)
					}
				}
			}
			return err
		},
		"DescribeConfigs": func(string) error {
			_, err := admin.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: errorsTopic})
			return err
		},
		"IncrementalAlterConfigs": func(string) error {
			entry := sarama.IncrementalAlterConfigsEntry{Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &value}
			return admin.IncrementalAlterConfig(sarama.TopicResource, errorsTopic, map[string]sarama.IncrementalAlterConfigsEntry{"retention.ms": entry}, false)
		},
		"DeleteRecords": func(string) error { return admin.DeleteRecords(errorsTopic, map[int32]int64{0: 0}) },
		"ListGroups":    func(string) error { _, err := admin.ListConsumerGroups(); return err },
		"DescribeGroups": func(string) error {
			found, err := admin.DescribeConsumerGroups([]string{errorsGroup})
			for _, one := range found {
				if one.Err != sarama.ErrNoError {
					err = first(err, one.Err)
				}
			}
			return err
		},
		"DeleteGroups": func(string) error { return admin.DeleteConsumerGroup("no-group") },
		"OffsetFetch": func(string) error {
			found, err := admin.ListConsumerGroupOffsets(errorsGroup, map[string][]int32{errorsTopic: {0}})
			if err == nil && found.Err != sarama.ErrNoError {
				err = found.Err
			}
			if err == nil {
				if block := found.GetBlock(errorsTopic, 0); block != nil && block.Err != sarama.ErrNoError {
					err = block.Err
				}
			}
			return err
		},
		"OffsetDelete": func(string) error { return admin.DeleteConsumerGroupOffset(errorsGroup, errorsTopic, 0) },
		"Produce": func(string) error {
			producer, err := sarama.NewSyncProducer([]string{broker}, config)
			if err != nil {
				return err
			}
			defer producer.Close()
			_, _, err = producer.SendMessage(&sarama.ProducerMessage{Topic: errorsTopic, Partition: 0, Value: sarama.StringEncoder("x")})
			return err
		},
		"Fetch": func(string) error {
			consumer, err := sarama.NewConsumer([]string{broker}, config)
			if err != nil {
				return err
			}
			defer consumer.Close()
			partition, err := consumer.ConsumePartition(errorsTopic, 0, 0)
			if err != nil {
				return err
			}
			defer partition.AsyncClose()
			select {
			case <-partition.Messages():
				return nil
			case problem := <-partition.Errors():
				return problem.Err
			case <-time.After(time.Minute):
				return errors.New("no record")
			}
		},
	}))
}
