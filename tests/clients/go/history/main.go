// franz-go and sarama at work until the input ends; what each line of the journal means is in history.py. A module of its own:
// before 1.48 sarama's idempotent producer reports records as delivered that no broker has, of Kafka too, when leaders change,
// and later releases cannot speak to the oldest brokers.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"
)

type journal struct {
	mu        sync.Mutex
	acked     map[string]bool
	enough    atomic.Bool
	produced  atomic.Bool
	name      string
	bootstrap []string
}

func (j *journal) say(words ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	fmt.Println(words...)
}

func (j *journal) delivered(value string, err error) {
	word := "acked"
	if err != nil {
		word = "lost"
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err == nil {
		j.acked[value] = true
	}
	fmt.Println(word, value)
}

func (j *journal) missing(seen map[string]bool) bool {
	if !j.produced.Load() {
		return true
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for value := range j.acked {
		if !seen[value] {
			return true
		}
	}
	return false
}

func no(what string, err error) {
	if err != nil {
		fmt.Println("failed:", what, err)
		os.Exit(1)
	}
}

// generation lets franz-go's groups be those of KIP-848.
func generation(next bool) context.Context {
	if !next {
		return context.Background()
	}
	return context.WithValue(context.Background(), "opt_in_kafka_next_gen_balancer_beta", true)
}

// main runs one client of each kind: ADDRESSES franz|sarama.
func main() {
	name, bootstrap := os.Args[2], os.Args[1]
	j := &journal{acked: map[string]bool{}, name: name, bootstrap: strings.Split(bootstrap, ",")}
	work := []func(){j.franzProduce, j.franzTransact, func() { j.franzConsume("classic", false) }, func() { j.franzConsume("consumer", true) }}
	if name == "sarama" {
		work = []func(){j.saramaProduce, j.saramaTransact, j.saramaConsume}
	}
	var running sync.WaitGroup
	for _, one := range work {
		running.Add(1)
		go func() { defer running.Done(); one() }()
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	j.enough.Store(true)
	running.Wait()
	j.say("ok")
}

func (j *journal) franz(more ...kgo.Opt) *kgo.Client {
	options := append([]kgo.Opt{kgo.SeedBrokers(j.bootstrap...), kgo.RequestTimeoutOverhead(4 * time.Second), kgo.DialTimeout(2 * time.Second)}, more...)
	client, err := kgo.NewClient(options...)
	no("client", err)
	return client
}

func (j *journal) franzProduce() {
	client := j.franz(kgo.DefaultProduceTopic(j.name))
	for n := 0; !j.enough.Load(); n++ {
		value := fmt.Sprint(n)
		client.Produce(context.Background(), &kgo.Record{Key: []byte(value), Value: []byte(value)}, func(_ *kgo.Record, err error) { j.delivered(value, err) })
		time.Sleep(30 * time.Millisecond)
	}
	no("flush", client.Flush(context.Background()))
	client.Close()
	j.produced.Store(true)
}

// One member of a group reads everything, and commits what it has read.
func (j *journal) franzConsume(protocol string, next bool) {
	group, seen := j.name+"-"+protocol, map[string]bool{}
	client := j.franz(kgo.ConsumerGroup(group), kgo.ConsumeTopics(j.name), kgo.WithContext(generation(next)), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.BlockRebalanceOnPoll())
	for j.missing(seen) {
		time.Sleep(200 * time.Millisecond) // some records for each commit
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		fetches := client.PollFetches(ctx)
		cancel()
		ends := map[int32]kgo.EpochOffset{}
		fetches.EachRecord(func(r *kgo.Record) {
			seen[string(r.Value)] = true
			j.say("read", group, r.Partition, r.Offset, string(r.Value))
			ends[r.Partition] = kgo.EpochOffset{Epoch: r.LeaderEpoch, Offset: r.Offset + 1}
		})
		if len(ends) > 0 {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			err := client.CommitRecords(ctx, fetches.Records()...)
			cancel()
			for partition, end := range ends {
				if err == nil {
					j.say("committed", group, partition, end.Offset)
				}
			}
			if err != nil {
				j.say("note", group, err)
			}
		}
		client.AllowRebalance()
	}
	client.CloseAllowingRebalance()
}

// Transactions of three records, each in a partition of its own.
func (j *journal) franzTransact() {
	client := j.franz(kgo.TransactionalID(j.name), kgo.DefaultProduceTopic(j.name+"-whole"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	for n := 0; !j.enough.Load(); n++ {
		ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
		no("begin", client.BeginTransaction())
		some := []*kgo.Record{}
		for part := 0; part < 3; part++ {
			some = append(some, &kgo.Record{Partition: int32(part), Value: []byte(fmt.Sprint(n, "-", part))})
		}
		if err := client.ProduceSync(ctx, some...).FirstErr(); err != nil {
			j.say("note", "transaction", n, err)
			j.say("aborted", n)
			no("abort", client.AbortBufferedRecords(ctx))
			no("abort", client.EndTransaction(ctx, kgo.TryAbort))
		} else if err := client.EndTransaction(ctx, kgo.TryCommit); err != nil {
			j.say("note", "transaction", n, err)
			j.say("doubtful", n)
			no("abort", client.EndTransaction(ctx, kgo.TryAbort))
		} else {
			j.say("whole", n)
		}
		cancel()
		time.Sleep(100 * time.Millisecond)
	}
	client.Close()
}

func (j *journal) sarama() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.V3_6_0_0
	config.Net.DialTimeout, config.Net.ReadTimeout, config.Net.WriteTimeout = 2*time.Second, 4*time.Second, 4*time.Second
	config.Net.MaxOpenRequests = 1
	config.Metadata.Retry.Max, config.Metadata.Retry.Backoff = 100, 100*time.Millisecond
	config.Producer.Retry.Max, config.Producer.Retry.Backoff = 300, 100*time.Millisecond
	config.Producer.Idempotent, config.Producer.RequiredAcks = true, sarama.WaitForAll
	config.Producer.Return.Successes, config.Producer.Return.Errors = true, true
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	return config
}

func (j *journal) saramaProduce() {
	producer, err := sarama.NewAsyncProducer(j.bootstrap, j.sarama())
	no("producer", err)
	var reading sync.WaitGroup
	reading.Add(2)
	value := func(m *sarama.ProducerMessage) string { data, _ := m.Value.Encode(); return string(data) }
	go func() {
		defer reading.Done()
		for m := range producer.Successes() {
			j.delivered(value(m), nil)
		}
	}()
	go func() {
		defer reading.Done()
		for e := range producer.Errors() {
			j.say("note", "produce", e.Err)
			j.delivered(value(e.Msg), e.Err)
		}
	}()
	for n := 0; !j.enough.Load(); n++ {
		text := sarama.StringEncoder(fmt.Sprint(n))
		producer.Input() <- &sarama.ProducerMessage{Topic: j.name, Key: text, Value: text}
		time.Sleep(30 * time.Millisecond)
	}
	producer.AsyncClose()
	reading.Wait()
	j.produced.Store(true)
}

type committing struct {
	j     *journal
	group string
	mu    *sync.Mutex
	seen  map[string]bool
}

func (committing) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (committing) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (c committing) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case m, open := <-claim.Messages():
			if !open {
				return nil
			}
			c.mu.Lock()
			c.seen[string(m.Value)] = true
			c.mu.Unlock()
			c.j.say("read", c.group, m.Partition, m.Offset, string(m.Value))
			session.MarkMessage(m, "")
		case <-tick.C:
			session.Commit() // it says nothing of whether that worked
		case <-session.Context().Done():
			return nil
		}
	}
}

func (j *journal) saramaConsume() {
	name := j.name + "-classic"
	group, err := sarama.NewConsumerGroup(j.bootstrap, name, j.sarama())
	no("group", err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Add(1)
	member := committing{j, name, &sync.Mutex{}, map[string]bool{}}
	go func() {
		defer running.Done()
		for ctx.Err() == nil {
			if err := group.Consume(ctx, []string{j.name}, member); err != nil {
				j.say("note", name, err)
				time.Sleep(100 * time.Millisecond)
			}
		}
	}()
	for {
		member.mu.Lock()
		missing := j.missing(member.seen)
		member.mu.Unlock()
		if !missing {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	cancel()
	running.Wait()
	_ = group.Close()
}

// Transactions of three records, each in a partition of its own, and of an offset.
func (j *journal) saramaTransact() {
	config := j.sarama()
	config.Producer.Transaction.ID = j.name
	config.Producer.Transaction.Retry.Max = 100
	config.Producer.Partitioner = sarama.NewManualPartitioner
	var producer sarama.SyncProducer
	for n := 0; !j.enough.Load(); n++ {
		commits := false
		err := func() (err error) {
			if producer == nil {
				if producer, err = sarama.NewSyncProducer(j.bootstrap, config); err != nil {
					return err
				}
			}
			if err = producer.BeginTxn(); err != nil {
				return err
			}
			for part := int32(0); part < 3; part++ {
				m := &sarama.ProducerMessage{Topic: j.name + "-whole", Partition: part, Value: sarama.StringEncoder(fmt.Sprint(n, "-", part))}
				if _, _, err = producer.SendMessage(m); err != nil {
					return err
				}
			}
			offset := map[string][]*sarama.PartitionOffsetMetadata{j.name: {{Partition: 0, Offset: int64(n)}}}
			if err = producer.AddOffsetsToTxn(offset, j.name+"-whole"); err != nil {
				return err
			}
			commits = true
			return producer.CommitTxn()
		}()
		if err == nil {
			j.say("whole", n)
		} else {
			j.say("note", "transaction", n, err)
			word := "aborted"
			if commits {
				word = "doubtful"
			}
			j.say(word, n)
			if producer != nil && (producer.TxnStatus()&sarama.ProducerTxnFlagFatalError != 0 || producer.AbortTxn() != nil) {
				_ = producer.Close()
				producer = nil
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	if producer != nil {
		_ = producer.Close()
	}
}
