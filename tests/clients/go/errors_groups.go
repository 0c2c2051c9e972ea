package main

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
	"github.com/rcrowley/go-metrics"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Members of groups, and transactions, that meet errors.

const (
	heartbeatKey = 12
	beats        = 3                       // heartbeats of a member that goes on after an error of one
	sessionTime  = 1500 * time.Millisecond // after an UNKNOWN_MEMBER_ID the member that there was is waited for
)

// A hook of franz-go that counts heartbeats which were answered.
type beatsOfFranz struct{ answered atomic.Int64 }

func (b *beatsOfFranz) OnBrokerE2E(_ kgo.BrokerMetadata, key int16, found kgo.BrokerE2E) {
	if key == heartbeatKey && found.ReadErr == nil {
		b.answered.Add(1)
	}
}

func franzGroupCodes(client *kgo.Client, options []kgo.Opt) does {
	admin, ctx := kadm.NewClient(client), context.Background()
	share := func(name string) error {
		earliest(client, name)
		return franzAcknowledge(ctx, name, options)
	}
	return does{
		"FindCoordinator": func(name string) error { return admin.FindGroupCoordinators(ctx, name).Error() },
		"Heartbeat": func(name string) error {
			counted := &beatsOfFranz{}
			more := []kgo.Opt{kgo.ConsumerGroup(name), kgo.ConsumeTopics(errorsTopic), kgo.HeartbeatInterval(50 * time.Millisecond), kgo.WithHooks(counted)}
			return franzReadsOn(ctx, slices.Concat(options, more), func(member *kgo.Client, _ []*kgo.Record) error {
				for counted.answered.Load() < beats {
					within, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
					found := member.PollFetches(within)
					cancel()
					for _, one := range found.Errors() {
						if !errors.Is(one.Err, context.DeadlineExceeded) {
							return one.Err
						}
					}
				}
				return nil
			})
		},
		"LeaveGroup": func(name string) error {
			more := []kgo.Opt{kgo.ConsumerGroup(name), kgo.ConsumeTopics(errorsTopic)}
			return franzReadsOn(ctx, slices.Concat(options, more), func(member *kgo.Client, _ []*kgo.Record) error { return member.LeaveGroupContext(ctx) })
		},
		"ConsumerGroupHeartbeat": func(name string) error {
			return franzPoll(ctx, append(options, kgo.ConsumerGroup(name), kgo.ConsumeTopics(errorsTopic), kgo.WithContext(nextGeneration(true))))
		},
		"ConsumerGroupDescribe": func(string) error {
			found, err := admin.DescribeConsumerGroups(ctx, "no-group")
			return first(err, found.Error())
		},
		"ShareGroupDescribe": func(string) error {
			found, err := admin.DescribeShareGroups(ctx, "no-group")
			return first(err, found.Error())
		},
		"DescribeShareGroupOffsets": func(string) error {
			found, err := admin.DescribeShareGroupOffsets(ctx, "no-group")
			for _, one := range found {
				err = first(err, one.Err, one.Offsets.Error())
			}
			return err
		},
		"AlterShareGroupOffsets": func(name string) error {
			begin := kadm.Offsets{}
			begin.Add(kadm.Offset{Topic: errorsTopic, Partition: 0, At: 0, LeaderEpoch: -1})
			found, err := admin.AlterShareGroupOffsets(ctx, name, begin)
			return first(err, found.Error())
		},
		"DeleteShareGroupOffsets": func(string) error {
			found, err := admin.DeleteShareGroupOffsets(ctx, "no-group", errorsTopic)
			return first(err, found.Error())
		},
		"ShareGroupHeartbeat": share,
		"ShareFetch":          share,
		"ShareAcknowledge":    share,
		"TxnOffsetCommit":     func(name string) error { return franzConsumeAndWrite(ctx, name, options) },
	}
}

// franzReadsOn lets a member read a record, and go on.
func franzReadsOn(ctx context.Context, options []kgo.Opt, goOn func(member *kgo.Client, read []*kgo.Record) error) error {
	member, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer member.Close()
	read, err := franzRecords(ctx, member)
	if err != nil {
		return err
	}
	return goOn(member, read)
}

// franzAcknowledge reads a record in a share group, and acknowledges it.
func franzAcknowledge(ctx context.Context, name string, options []kgo.Opt) error {
	var refused atomic.Pointer[error]
	more := []kgo.Opt{kgo.ShareGroup(name), kgo.ConsumeTopics(errorsTopic), kgo.FetchMaxWait(50 * time.Millisecond), kgo.ShareAckCallback(func(_ *kgo.Client, results kgo.ShareAckResults) {
		for _, one := range results {
			if one.Err != nil {
				refused.CompareAndSwap(nil, &one.Err)
			}
		}
	})}
	return franzReadsOn(ctx, slices.Concat(options, more), func(member *kgo.Client, read []*kgo.Record) error {
		member.MarkAcks(kgo.AckAccept, read...)
		err := member.FlushAcks(ctx)
		if told := refused.Load(); told != nil {
			err = first(err, *told)
		}
		return err
	})
}

// franzConsumeAndWrite writes a record, and commits the offset of one that it has read, in one transaction.
func franzConsumeAndWrite(ctx context.Context, name string, options []kgo.Opt) error {
	more := []kgo.Opt{kgo.TransactionalID(name), kgo.ConsumerGroup(name), kgo.ConsumeTopics(errorsTopic), kgo.RequireStableFetchOffsets()}
	session, err := kgo.NewGroupTransactSession(slices.Concat(options, more)...)
	if err != nil {
		return err
	}
	defer session.Close()
	if _, err := franzRecords(ctx, session.Client()); err != nil {
		return err
	}
	if err := session.Begin(); err != nil {
		return err
	}
	if err := session.ProduceSync(ctx, &kgo.Record{Topic: "transactions", Value: []byte("x")}).FirstErr(); err != nil {
		return err
	}
	committed, err := session.End(ctx, kgo.TryCommit)
	if err == nil && !committed {
		return errors.New("the transaction was aborted")
	}
	return err
}

func saramaGroupCodes(broker string, config *sarama.Config) does {
	member := func(heartbeats int64) func(name string) error {
		return func(name string) error { return saramaConsume(broker, name, *config, heartbeats) }
	}
	transact := func(name string) error { return saramaTransact(broker, name, *config) }
	return does{
		"FindCoordinator": func(name string) error {
			client, err := sarama.NewClient([]string{broker}, config)
			if err != nil {
				return err
			}
			defer client.Close()
			return client.RefreshCoordinator(name)
		},
		"JoinGroup":          member(0),
		"SyncGroup":          member(0),
		"Heartbeat":          member(beats),
		"OffsetCommit":       member(0),
		"LeaveGroup":         member(0),
		"InitProducerId":     transact,
		"AddPartitionsToTxn": transact,
		"AddOffsetsToTxn":    transact,
		"TxnOffsetCommit":    transact,
		"EndTxn":             transact,
	}
}

// A member of sarama that reads a record and commits its offset. It ends its session when so many heartbeats were sent.
type saramaReader struct {
	sent       metrics.Meter
	heartbeats int64
	isDone     bool
}

func (m *saramaReader) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (m *saramaReader) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (m *saramaReader) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	message, isOpen := <-claim.Messages()
	if !isOpen {
		return nil
	}
	session.MarkMessage(message, "")
	session.Commit()
	for m.sent.Count() < m.heartbeats {
		select {
		case <-session.Context().Done():
			return nil
		case <-time.After(10 * time.Millisecond):
		}
	}
	m.isDone = true
	return nil
}

// saramaConsume returns the first error that the application hears.
func saramaConsume(broker, name string, config sarama.Config, heartbeats int64) error {
	config.MetricRegistry = metrics.NewRegistry()
	config.Consumer.MaxWaitTime = 20 * time.Millisecond // of a request that the end of the session waits for
	config.Consumer.Group.Heartbeat.Interval = 20 * time.Millisecond
	config.Consumer.Group.Session.Timeout = sessionTime
	group, err := sarama.NewConsumerGroup([]string{broker}, name, &config)
	if err != nil {
		return err
	}
	told := make(chan error, 1)
	go func() {
		var found error
		for one := range group.Errors() {
			found = first(found, one)
		}
		told <- found
	}()
	within, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	member := &saramaReader{sent: metrics.GetOrRegisterMeter("protocol-requests-rate-12", config.MetricRegistry), heartbeats: heartbeats}
	for err == nil && !member.isDone {
		err = first(group.Consume(within, []string{errorsTopic}, member), within.Err())
	}
	closed := group.Close()
	return first(err, <-told, closed)
}

// saramaTransact writes a record and an offset in one transaction.
func saramaTransact(broker, name string, config sarama.Config) error {
	config.Producer.Idempotent, config.Producer.RequiredAcks, config.Net.MaxOpenRequests = true, sarama.WaitForAll, 1
	config.Producer.Transaction.ID, config.Producer.Transaction.Retry.Backoff = name, 10*time.Millisecond
	producer, err := sarama.NewSyncProducer([]string{broker}, &config)
	if err != nil {
		return err
	}
	defer producer.Close()
	if err := producer.BeginTxn(); err != nil {
		return err
	}
	message := &sarama.ProducerMessage{Topic: "transactions", Partition: 0, Value: sarama.StringEncoder("x")}
	if _, _, err := producer.SendMessage(message); err != nil {
		return err
	}
	offsets := map[string][]*sarama.PartitionOffsetMetadata{errorsTopic: {{Partition: 0, Offset: 1}}}
	if err := producer.AddOffsetsToTxn(offsets, name); err != nil {
		return err
	}
	return producer.CommitTxn()
}
