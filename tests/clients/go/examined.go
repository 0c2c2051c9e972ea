// The Go clients in examinations of the verdict. Each argument is the name of one and the address of its broker. The work of an
// examination goes on until a line comes on the standard input; then the client closes all that it has.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	churn     = 8 // steps after which the second member of a group goes, and comes again
	pollsFor  = 100 * time.Millisecond
	seldom    = 3 * time.Second // between records where connections become idle
	readMax   = 10
	static    = "static" // the group of a static member, and its instance id
	together  = 10       // records that do not wait for each other
	heartbeat = 100 * time.Millisecond
	session   = 6 * time.Second // for so long a group waits for a member that has got another id
)

// Long enough that a codec makes it shorter: it is sent as it is otherwise.
var value = strings.Repeat("value", 20)

// The user who logs in.
const examinedUser, examinedPassword = "examined", "examined-secret"

// A work does a step of its client for each value of the channel; the client is closed when the channel is.
type work func(broker string, steps <-chan int)

func examined(client string, sites []string) {
	works := map[string]work{
		"basic": franzCompressed, "idempotence": franzTogether, "network": franzPlain, "truncation": franzReading, "connections": franzSeldom, "transactions": franzWrites,
		"login":          franzLogin,
		"classic-group":  func(broker string, steps <-chan int) { franzMembers(broker, false, steps) },
		"consumer-group": func(broker string, steps <-chan int) { franzMembers(broker, true, steps) },
		"share-group":    franzQueue,
		"ending-writes":  franzEndingWrites, "ending-sends": franzTogether,
		"ending-static": func(broker string, steps <-chan int) {
			franzEndingMember(broker, "ending-static", false, steps, kgo.InstanceID("ending"))
		},
		"ending-member": func(broker string, steps <-chan int) { franzEndingMember(broker, "ending", true, steps) },
	}
	if client == "sarama" {
		works = saramaWorks()
	}
	orders := make(chan struct{})
	go func() {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			orders <- struct{}{}
		}
	}()
	for _, site := range sites {
		name, broker, _ := strings.Cut(site, "=")
		steps := make(chan int)
		go func() {
			defer close(steps)
			for n := 0; ; n++ {
				select {
				case steps <- n:
				case <-orders:
					return
				}
			}
		}()
		works[name](broker, steps)
		fmt.Println(name, "done")
	}
}

func franzClient(broker string, more ...kgo.Opt) *kgo.Client {
	client, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(broker), kgo.FetchMaxWait(50 * time.Millisecond), kgo.AllowAutoTopicCreation(),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())}, more...)...)
	no("client", err)
	return client
}

func franzSend(client *kgo.Client, topic string, partition int) error {
	return client.ProduceSync(context.Background(), &kgo.Record{Topic: topic, Partition: int32(partition), Value: []byte(value)}).FirstErr()
}

func franzReads(client *kgo.Client) int {
	ctx, cancel := context.WithTimeout(context.Background(), pollsFor)
	defer cancel()
	return client.PollRecords(ctx, readMax).NumRecords()
}

// A producer, and a consumer that chooses its partition; offsets are committed by the group that it names.
func franzPlain(broker string, steps <-chan int) {
	franzPlainWith(broker, steps)
}

func franzCompressed(broker string, steps <-chan int) {
	franzPlainWith(broker, steps, kgo.ProducerBatchCompression(kgo.ZstdCompression()))
}

// Records that do not wait for each other.
func franzTogether(broker string, steps <-chan int) {
	producer := franzClient(broker, kgo.ProducerLinger(0))
	for range steps {
		for range together {
			producer.Produce(context.Background(), &kgo.Record{Topic: "plain", Value: []byte(value)}, nil)
		}
		_ = franzSend(producer, "plain", 0) // a record that is refused is lost
	}
	producer.Close()
}

// A record now and then.
func franzSeldom(broker string, steps <-chan int) {
	producer := franzClient(broker)
	for range steps {
		no("produce", franzSend(producer, "plain", 0))
		time.Sleep(seldom)
	}
	producer.Close()
}

func franzLogin(broker string, steps <-chan int) {
	franzPlainWith(broker, steps, kgo.SASL(franzMechanism("PLAIN", examinedUser, examinedPassword)))
}

func franzPlainWith(broker string, steps <-chan int, more ...kgo.Opt) {
	producer := franzClient(broker, more...)
	no("produce", franzSend(producer, "plain", 0))
	reads := kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"plain": {0: kgo.NewOffset().AtStart()}})
	consumer := franzClient(broker, append(more, reads)...)
	admin := kadm.NewClient(consumer)
	for range steps {
		no("produce", franzSend(producer, "plain", 0))
		franzReads(consumer)
		// What fails is asked again at the next step.
		_, _ = admin.ListEndOffsets(context.Background(), "plain")
		_, _ = admin.Metadata(context.Background())
		_, _ = admin.CommitOffsets(context.Background(), "plain", kadm.OffsetsFromRecords(kgo.Record{Topic: "plain"}))
	}
	consumer.Close()
	producer.Close()
}

// A consumer that chooses its partition, and only reads.
func franzReading(broker string, steps <-chan int) {
	consumer := franzClient(broker, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"read": {0: kgo.NewOffset().AtStart()}}))
	for range steps {
		franzReads(consumer)
	}
	consumer.Close()
}

// A session consumes, produces and commits both in a transaction.
func franzWrites(broker string, steps <-chan int) {
	writer := franzClient(broker)
	no("produce", franzSend(writer, "read", 0))
	session, err := kgo.NewGroupTransactSession(kgo.SeedBrokers(broker), kgo.TransactionalID("transactions"), kgo.ConsumerGroup("group"),
		kgo.ConsumeTopics("read"), kgo.AllowAutoTopicCreation(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.FetchMaxWait(50*time.Millisecond), kgo.RequireStableFetchOffsets())
	no("session", err)
	for range steps {
		no("produce", franzSend(writer, "read", 0))
		ctx, cancel := context.WithTimeout(context.Background(), pollsFor)
		session.PollFetches(ctx)
		cancel()
		no("begin", session.Begin())
		failed := kgo.AbortingFirstErrPromise(session.Client())
		for range 2 {
			session.Produce(context.Background(), &kgo.Record{Topic: "written", Value: []byte(value)}, failed.Promise())
			_ = session.Client().Flush(context.Background())
		}
		_, err := session.End(context.Background(), failed.Err() == nil)
		no("end", err)
	}
	session.Close()
	writer.Close()
}

// A member of a group, and how many partitions it has.
type franzMember struct {
	*kgo.Client
	partitions atomic.Int32
}

func franzComes(broker string, next bool, more ...kgo.Opt) *franzMember {
	member := &franzMember{}
	count := func(sign int32) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, moved map[string][]int32) {
			member.partitions.Add(sign * int32(len(moved["shared"])))
		}
	}
	member.Client = franzClient(broker, append([]kgo.Opt{kgo.ConsumerGroup("members"), kgo.ConsumeTopics("shared"), kgo.WithContext(nextGeneration(next)),
		kgo.HeartbeatInterval(heartbeat), kgo.SessionTimeout(session), kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(count(1)), kgo.OnPartitionsRevoked(count(-1)), kgo.OnPartitionsLost(count(-1))}, more...)...)
	return member
}

// Two members read and commit; the second one goes and comes again. A static member of another group does so in the end.
func franzMembers(broker string, next bool, steps <-chan int) {
	producer := franzClient(broker)
	no("produce", franzSend(producer, "shared", 0))
	members := []*franzMember{franzComes(broker, next)}
	for n := range steps {
		moves := n%churn == 0
		for _, member := range members {
			moves = moves && member.partitions.Load() > 0
		}
		if moves && len(members) == 2 {
			members[1].CloseAllowingRebalance()
			members = members[:1]
		} else if moves {
			members = append(members, franzComes(broker, next))
		}
		no("produce", franzSend(producer, "shared", n%2))
		for _, member := range members {
			if franzReads(member.Client) > 0 {
				_ = member.CommitUncommittedOffsets(context.Background()) // what was read is read again if the group rebalances
			}
			member.AllowRebalance()
		}
	}
	for _, member := range members {
		member.CloseAllowingRebalance()
	}
	for range 2 {
		member := franzComes(broker, next, kgo.ConsumerGroup(static), kgo.InstanceID(static))
		for member.partitions.Load() == 0 {
			franzReads(member.Client)
			member.AllowRebalance()
		}
		member.CloseAllowingRebalance()
	}
	producer.Close()
}

// Records are acknowledged as they come; some are held for longer in the end, and their locks renewed.
func franzQueue(broker string, steps <-chan int) {
	producer := franzClient(broker)
	no("produce", franzSend(producer, "queue", 0))
	consumer := franzClient(broker, kgo.ShareGroup("queue"), kgo.ConsumeTopics("queue"))
	for range steps {
		no("produce", franzSend(producer, "queue", 0))
		franzReads(consumer)
		_ = consumer.FlushAcks(context.Background())
	}
	consumer.Close()
	no("produce", franzSend(producer, "queue", 0))
	consumer = franzClient(broker, kgo.ShareGroup("queue"), kgo.ConsumeTopics("queue"))
	held := consumer.PollRecords(context.Background(), readMax).Records()
	for _, status := range []kgo.AckStatus{kgo.AckRenew, kgo.AckAccept} {
		consumer.MarkAcks(status, held...)
		no("acknowledge", consumer.FlushAcks(context.Background()))
	}
	consumer.Close()
	producer.Close()
}
